from pathlib import Path

EXPECTED = ["91.44", "42.16", "13.81", "2.27", "8.82", "9.46", "-40.00", "37.00"]

answers = Path("/app/answers.txt").read_text(encoding="ascii").splitlines()
right = sum(given == wanted for given, wanted in zip(answers, EXPECTED)) if len(answers) == len(EXPECTED) else 0
print(right / len(EXPECTED))
