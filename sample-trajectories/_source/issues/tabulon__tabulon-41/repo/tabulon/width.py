"""How many terminal columns a piece of text takes."""

import unicodedata

_ZERO_WIDTH = {"Mn", "Me", "Cf", "Cc"}


def char_width(char):
    """Return the columns taken by one character: 0, 1 or 2."""
    if unicodedata.category(char) in _ZERO_WIDTH:
        return 0
    if unicodedata.east_asian_width(char) in ("W", "F"):
        return 2
    return 1


def display_width(text):
    """Return the number of columns `text` takes."""
    return sum(char_width(char) for char in text)


def pad(text, columns, align="left"):
    """Fill `text` with spaces up to `columns`."""
    missing = max(0, columns - display_width(text))
    if align == "right":
        return " " * missing + text
    if align == "center":
        left = missing // 2
        return " " * left + text + " " * (missing - left)
    if align != "left":
        raise ValueError(f"unknown alignment: {align}")
    return text + " " * missing


def clip(text, columns, marker="…"):
    """Shorten `text` to at most `columns`, ending in `marker` when cut."""
    if display_width(text) <= columns:
        return text
    room = columns - display_width(marker)
    kept = []
    used = 0
    for char in text:
        used += char_width(char)
        if used > room:
            break
        kept.append(char)
    return "".join(kept) + marker
