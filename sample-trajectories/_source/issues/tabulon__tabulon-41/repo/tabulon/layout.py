"""Decide how wide every column becomes."""

from .width import display_width

MIN_COLUMN = 3


def natural_widths(rows):
    """Return the width of the widest cell of every column."""
    widths = []
    for row in rows:
        for index, cell in enumerate(row):
            if index == len(widths):
                widths.append(0)
            widths[index] = max(widths[index], display_width(cell))
    return widths


def shrink(widths, available):
    """Take columns away from the widest ones until all fit into `available`.

    No column gets narrower than MIN_COLUMN, so the result can still be too
    wide for a very small terminal.
    """
    widths = list(widths)
    while sum(widths) > available:
        widest = max(range(len(widths)), key=lambda i: (widths[i], -i))
        if widths[widest] <= MIN_COLUMN:
            break
        widths[widest] -= 1
    return widths


def alignments(rows, count):
    """Columns that hold only numbers go to the right."""
    result = []
    for index in range(count):
        cells = [row[index] for row in rows if index < len(row)]
        numeric = bool(cells) and all(_is_number(cell) for cell in cells)
        result.append("right" if numeric else "left")
    return result


def _is_number(cell):
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        return True
    if isinstance(cell, str):
        text = cell.strip().rstrip("%")
        try:
            float(text)
        except ValueError:
            return False
        return True
    return False
