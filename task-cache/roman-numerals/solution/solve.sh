#!/bin/bash
set -e
cat > /app/roman <<'PY'
#!/usr/bin/env python3
import re
import sys

STEPS = [
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),
    (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
]


def to_roman(number):
    text = ""
    for value, letters in STEPS:
        while number >= value:
            text += letters
            number -= value
    return text


def main(arguments):
    if len(arguments) != 1:
        return 2
    text = arguments[0]
    if re.fullmatch(r"[1-9][0-9]{0,3}", text, re.ASCII) and int(text) <= 3999:
        print(to_roman(int(text)))
        return 0
    for number in range(1, 4000):
        if to_roman(number) == text.upper() and text.isascii():
            print(number)
            return 0
    return 2


sys.exit(main(sys.argv[1:]))
PY
chmod 0755 /app/roman
