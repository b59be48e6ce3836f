import json
from pathlib import Path

EXPECTED = [
    ("maren", 1073741824),
    ("harbour", 197132288),
    ("bakery", 1024),
    ("ines", 1024),
    ("gull-1", 1),
    ("gull-2", 1),
]


def report():
    return json.loads(Path("/app/over.json").read_text())


def test_is_a_list_of_accounts():
    assert all(set(entry) == {"account", "over_bytes"} for entry in report())


def test_sizes_are_integers():
    assert all(type(entry["over_bytes"]) is int for entry in report())


def test_accounts_and_order():
    assert [(entry["account"], entry["over_bytes"]) for entry in report()] == EXPECTED
