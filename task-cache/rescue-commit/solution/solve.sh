#!/bin/bash
set -e
cd /app/notes
git reset -q --hard "$(git rev-parse 'HEAD@{1}')"
