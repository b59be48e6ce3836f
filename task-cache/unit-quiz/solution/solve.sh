#!/bin/bash
set -e
python3 - <<'PY'
from decimal import ROUND_HALF_UP, Decimal as D

CM = {"cm": D(1), "m": D(100), "km": D(100000), "ft": D("30.48"), "mi": D("160934.4"), "nmi": D(185200)}
GRAM = {"g": D(1), "kg": D(1000), "lb": D("453.59237"), "oz": D("453.59237") / 16}
CUBIC_CM = {"l": D(1000), "gal": 231 * D("2.54") ** 3}


def convert(amount, source, target):
    if (source, target) == ("degC", "degF"):
        return amount * 9 / 5 + 32
    if (source, target) == ("degF", "degC"):
        return (amount - 32) * 5 / 9
    for table in (CM, GRAM, CUBIC_CM):
        if source in table and target in table:
            return amount * table[source] / table[target]
    raise ValueError(f"{source} in {target}")


with open("/app/questions.txt") as questions, open("/app/answers.txt", "w") as answers:
    for line in questions:
        amount, source, _, target = line.split()
        answers.write(f"{convert(D(amount), source, target).quantize(D('0.01'), ROUND_HALF_UP)}\n")
PY
