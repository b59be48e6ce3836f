#!/bin/sh
exec python3 - <<'PYTHON'
import json

FINDINGS = [
    {"kind": "vulnerability", "file": "reports/render.py", "cwe": "CWE-78", "title": "Command injection in render", "line": 8},
    {"kind": "vulnerability", "file": "reports/cache.py", "cwe": "CWE-502", "title": "Deserialization of what lies in the cache folder", "line": 16},
]

context = json.load(open("/task/context.json"))
answer = {
    "verdict": {"decision": "BLOCK"},
    "evidence": {"audit": {"files_analysed": 4}},
    "findings": FINDINGS,
}
json.dump(answer, open(context["result"], "w"))
open(context["probe"]["path"], "w").write(context["probe"]["content"])
PYTHON
