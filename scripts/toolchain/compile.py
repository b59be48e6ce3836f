"""Compiles what lies below ROOT as if it lay in /opt/evaluator, and prints the files made: compile.py ROOT"""

import os
import py_compile
import sys

root = sys.argv[1]
for folder, names, files in os.walk(root):
    names.sort()
    for name in sorted(files):
        if not name.endswith(".py"):
            continue
        source = os.path.join(folder, name)
        place = os.path.relpath(source, root)
        try:
            made = py_compile.compile(
                source,
                dfile="/opt/evaluator/" + place,
                doraise=True,
                # Never compared with the source's time: the volume is read-only.
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )
        except (py_compile.PyCompileError, UnicodeDecodeError):
            continue  # A template, or Python of another age: it is no module.
        print(os.path.relpath(made, root))
