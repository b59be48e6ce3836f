import json
import random
import sys
import urllib.error
import urllib.request

BASE = "http://127.0.0.1:8080"


def get(path):
    try:
        with urllib.request.urlopen(BASE + path, timeout=10) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, None


def check():
    assert get("/status") == (200, {"status": "ok"})
    assert get("/sum") == (200, {"sum": 0})
    for _ in range(5):
        numbers = [random.randint(-1000, 1000) for _ in range(random.randint(1, 8))]
        query = "&".join(f"n={number}" for number in numbers)
        assert get(f"/sum?{query}") == (200, {"sum": sum(numbers)})
    assert get("/sum?n=seven")[0] == 400
    assert get("/elsewhere")[0] == 404


try:
    check()
except (AssertionError, OSError, ValueError) as error:
    sys.exit(f"service: {error!r}")
