#!/bin/sh
exec python3 - <<'PYTHON'
import json

context = json.load(open("/task/context.json"))
answer = {"verdict": {"decision": "BLOCK"}, "evidence": {}, "findings": []}
json.dump(answer, open(context["result"], "w"))
open(context["probe"]["path"], "w").write(context["probe"]["content"])
PYTHON
