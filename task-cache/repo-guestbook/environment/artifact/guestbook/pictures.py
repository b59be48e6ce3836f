"""Pictures that guests leave."""

import os

FOLDER = "pictures"


def read(name):
    with open(os.path.join(FOLDER, name), "rb") as file:
        return file.read()


def names():
    return sorted(os.listdir(FOLDER))
