#!/bin/bash
set -e
cat > /app/service.py <<'PY'
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class Handler(BaseHTTPRequestHandler):
    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        url = urlsplit(self.path)
        if url.path == "/status":
            return self.reply(200, {"status": "ok"})
        if url.path != "/sum":
            return self.reply(404, {"error": "no such path"})
        try:
            total = sum(int(n) for n in parse_qs(url.query).get("n", []))
        except ValueError:
            return self.reply(400, {"error": "n must be an integer"})
        return self.reply(200, {"sum": total})


ThreadingHTTPServer(("127.0.0.1", 8080), Handler).serve_forever()
PY
setsid python3 /app/service.py > /app/service.log 2>&1 < /dev/null &
python3 - <<'PY'
import socket
import time

for _ in range(200):
    try:
        socket.create_connection(("127.0.0.1", 8080), timeout=1).close()
        break
    except OSError:
        time.sleep(0.05)
else:
    raise SystemExit("the service does not listen")
PY
