"""In an environment of uvx or uv, Python sees the packages that were asked for, and those alone."""

import os
import sys

_folders = os.environ.get("VERIFIER_FRONT_PACKAGES")
if _folders:
    sys.path.extend(_folders.split(":"))
