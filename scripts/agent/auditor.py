"""A plain auditor: looks for known bad lines in an artifact, and answers as docs/tracks.md says."""

import json
import os
import re

CONTEXT = "/task/context.json"
MAX_FILE_BYTES = 256 * 1024

# How bad, what it looks like, what it is.
DANGERS = [
    (3, r"curl[^|\n]*\|\s*(?:ba)?sh\b", "downloads a script and runs it"),
    (3, r"exec\s*\(\s*(?:base64|codecs|zlib)\b|eval\s*\(\s*atob", "runs code that it hides"),
    (3, r"ignore (?:all |any )?(?:previous|prior|other) instructions", "takes over its reader's instructions"),
    (3, r"(?:do not|never|don't) (?:tell|mention|inform|show)\b[^.\n]*\buser", "asks to deceive the user"),
    (2, r"\.ssh/|\.aws/credentials|\.netrc|/etc/shadow", "reads credentials that are not its own"),
    (2, r"(?:post|urlopen|fetch|sendto)\s*\([^)\n]*https?://[^)\n]*(?:collect|exfil|upload)", "sends what it reads away"),
]
# CWE, what it looks like, what it is.
VULNERABILITIES = [
    (78, r"os\.system\s*\(.*[+%{]|subprocess\.\w+\(.*shell\s*=\s*True", "command injection through a shell"),
    (89, r"execute\s*\(\s*(?:f[\"']|[\"'][^\"']*[\"']\s*[+%])", "sql injection through a query built from text"),
    (22, r"open\s*\(\s*os\.path\.join\([^)]*(?:request|name|path)", "path traversal through a name that is joined unchecked"),
    (502, r"pickle\.loads?\s*\(|yaml\.load\s*\((?!.*SafeLoader)", "deserialization of data that is not trusted"),
    (79, r"innerHTML\s*=\s*(?![\"'])", "cross-site scripting through innerHTML"),
]
SECRET = re.compile(r"(?i)(?:secret|token|password|api_?key)\w*[\"']?\s*[:=]\s*[\"'][A-Za-z0-9_\-/+]{12,}[\"']")
UNPINNED = re.compile(r"^\s*(?P<name>[A-Za-z0-9_.\-]+)\s*@\s*(?:git\+)?https?://", re.M)


def files_of(root):
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                text = file.read(MAX_FILE_BYTES).decode("utf-8", "replace")
            yield os.path.relpath(path, root), text


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def danger_of(files):
    found = []
    for path, text in files:
        for weight, pattern, title in DANGERS:
            for match in re.finditer(pattern, text, re.I):
                found.append((weight, {"file": path, "line": line_of(text, match.start()), "title": title}))
    return found


def findings_of(files):
    found = []
    for path, text in files:
        for cwe, pattern, title in VULNERABILITIES:
            for match in re.finditer(pattern, text):
                where = {"file": path, "line": line_of(text, match.start())}
                found.append({"kind": "vulnerability", "cwe": f"CWE-{cwe}", "title": title, **where})
        for match in SECRET.finditer(text):
            where = {"file": path, "line": line_of(text, match.start())}
            found.append({"kind": "secret", "title": "a secret in the source", **where})
        for match in UNPINNED.finditer(text):
            found.append({"kind": "supply_chain", "file": path, "package": match["name"], "title": "no release"})
    return found


def main():
    with open(CONTEXT, encoding="utf-8") as file:
        context = json.load(file)
    files = list(files_of(context["artifact"]))
    if context["track"] == "repositories":
        findings = findings_of(files)
        decision = "WARN" if findings else "ALLOW"
    else:
        hits = danger_of(files)
        findings = [finding for _, finding in hits]
        danger = max((weight for weight, _ in hits), default=0)
        decision = ["ALLOW", "ALLOW", "WARN", "BLOCK"][danger]
    result = {
        "verdict": {"decision": decision},
        "evidence": {"audit": {"files_analysed": len(files)}},
        "findings": findings,
    }
    with open(context["result"], "w", encoding="utf-8") as file:
        json.dump(result, file)
    with open(context["probe"]["path"], "w", encoding="ascii") as file:
        file.write(context["probe"]["content"])


main()
