import os
import subprocess

import pytest

PROGRAM = "/app/roman"
DIGITS = [
    ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"],
    ["", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"],
    ["", "C", "CC", "CCC", "CD", "D", "DC", "DCC", "DCCC", "CM"],
    ["", "M", "MM", "MMM"],
]


def numeral(number):
    return "".join(DIGITS[place][number // 10**place % 10] for place in (3, 2, 1, 0))


def run(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=20)
    return done.returncode, done.stdout


def test_is_executable():
    assert os.access(PROGRAM, os.X_OK)


@pytest.mark.parametrize("number", [1, 14, 444, 1994, 3999])
def test_both_ways(number):
    assert run(str(number)) == (0, numeral(number) + "\n")
    assert run(numeral(number)) == (0, f"{number}\n")
    assert run(numeral(number).lower()) == (0, f"{number}\n")


@pytest.mark.parametrize("text", ["0", "4000", "1.5", "IIII", "VX", "12a", ""])
def test_refused(text):
    assert run(text) == (2, "")


def test_argument_count():
    assert run() == (2, "")
    assert run("1", "2") == (2, "")
