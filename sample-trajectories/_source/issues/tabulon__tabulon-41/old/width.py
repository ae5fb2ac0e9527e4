"""How many terminal columns a piece of text takes."""


def display_width(text):
    """Return the number of columns `text` takes."""
    return len(text)


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
    return text[: columns - len(marker)] + marker
