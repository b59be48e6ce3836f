"""Entries of the guest book."""

import sqlite3

from .settings import DATABASE


def connect():
    return sqlite3.connect(DATABASE)


def add(name, text):
    with connect() as database:
        database.execute("INSERT INTO entries (name, text) VALUES (?, ?)", (name, text))


def by_name(name):
    with connect() as database:
        return database.execute("SELECT name, text FROM entries WHERE name = '" + name + "'").fetchall()


def latest(count):
    with connect() as database:
        return database.execute("SELECT name, text FROM entries ORDER BY rowid DESC LIMIT ?", (count,)).fetchall()
