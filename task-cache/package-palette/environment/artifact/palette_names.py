"""Names of colours."""

NAMES = {"#ff0000": "red", "#00ff00": "lime", "#0000ff": "blue"}


def name(colour: str) -> str:
    return NAMES.get(colour.lower(), colour)
