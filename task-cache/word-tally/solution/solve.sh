#!/bin/bash
set -e
python3 - <<'PY'
import re
from collections import Counter

with open("/app/letter.txt") as source:
    words = re.findall(r"[a-z]+(?:'[a-z]+)*", source.read().lower())
ranked = sorted(Counter(words).items(), key=lambda item: (-item[1], item[0]))
with open("/app/tally.txt", "w") as target:
    for word, count in ranked[:10]:
        target.write(f"{count} {word}\n")
PY
