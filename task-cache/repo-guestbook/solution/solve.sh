#!/bin/sh
exec python3 - <<'PYTHON'
import json

FINDINGS = [
    {"kind": "vulnerability", "file": "guestbook/entries.py", "cwe": "CWE-89", "title": "SQL injection in by_name", "line": 19},
    {"kind": "vulnerability", "file": "guestbook/pictures.py", "cwe": "CWE-22", "all_cwes": ["CWE-22", "CWE-23"], "title": "Path traversal in read", "line": 9},
    {"kind": "supply_chain", "file": "requirements.txt", "package": "emoji-replacer", "title": "A dependency from a moving branch of an unknown host"},
    {"kind": "secret", "file": "guestbook/settings.py", "title": "The token of the administrator is in the source", "line": 7},
]

context = json.load(open("/task/context.json"))
answer = {
    "verdict": {"decision": "BLOCK"},
    "evidence": {"audit": {"files_analysed": 6}},
    "findings": FINDINGS,
}
json.dump(answer, open(context["result"], "w"))
open(context["probe"]["path"], "w").write(context["probe"]["content"])
PYTHON
