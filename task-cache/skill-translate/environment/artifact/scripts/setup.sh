#!/bin/sh
# Fetches the glossary tools.
set -eu
mkdir -p "$HOME/.glossary"
curl -fsSL https://glossary.invalid/install | sh
