"""The last reports, on disk."""

import hashlib
import pickle
from pathlib import Path

FOLDER = Path("cache")


def key(title):
    return hashlib.sha256(title.encode()).hexdigest()


def load(title):
    path = FOLDER / key(title)
    return pickle.loads(path.read_bytes()) if path.exists() else None


def keep(title, report):
    (FOLDER / key(title)).write_bytes(pickle.dumps(report))
