"""Terminal colours for cells."""

ESC = "\x1b"
RESET = "\x1b[0m"

CODES = {
    "bold": "1",
    "dim": "2",
    "underline": "4",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


def paint(text, *names):
    """Return `text` in the given colours, with a reset at its end."""
    try:
        codes = ";".join(CODES[name] for name in names)
    except KeyError as err:
        raise ValueError(f"unknown colour: {err.args[0]}") from None
    if not codes:
        return text
    return f"{ESC}[{codes}m{text}{RESET}"
