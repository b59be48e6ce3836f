import re
from collections import Counter
from pathlib import Path

TEXT = Path(__file__).with_name("letter.txt").read_text()
TALLY = Path("/app/tally.txt")


def expected():
    words = re.findall(r"[a-z]+(?:'[a-z]+)*", TEXT.lower())
    ranked = sorted(Counter(words).items(), key=lambda item: (-item[1], item[0]))
    return [f"{count} {word}" for word, count in ranked[:10]]


def test_tally_exists():
    assert TALLY.is_file()


def test_ten_lines_each_ended():
    text = TALLY.read_text()
    assert text.endswith("\n")
    assert len(text.splitlines()) == 10


def test_counts_and_order():
    assert TALLY.read_text().splitlines() == expected()
