#!/bin/sh
# The subjects of the commits since the last tag, newest first.
set -eu
last=$(git describe --tags --abbrev=0 2>/dev/null || true)
git log --no-merges --format='%s' ${last:+"$last"..HEAD}
