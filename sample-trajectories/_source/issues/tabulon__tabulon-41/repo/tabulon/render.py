"""Put rows together to a table."""

from dataclasses import dataclass

from .layout import alignments, natural_widths, shrink
from .width import clip, pad


@dataclass(frozen=True)
class Style:
    left: str = ""
    between: str = "  "
    right: str = ""
    rule: str = ""
    cross: str = ""

    def frame(self, count):
        """Columns that go to the frame of a row with `count` cells."""
        return len(self.left) + len(self.right) + len(self.between) * (count - 1)


STYLES = {
    "plain": Style(),
    "ascii": Style(between=" | ", rule="-", cross="-+-"),
    "box": Style(left="│ ", between=" │ ", right=" │", rule="─", cross="─┼─"),
    "markdown": Style(left="| ", between=" | ", right=" |", rule="-", cross=" | "),
}


def render(rows, headers=None, style="ascii", max_width=None):
    """Return the table as one string without a final newline."""
    try:
        look = STYLES[style]
    except KeyError:
        raise ValueError(f"unknown style: {style}") from None
    rows = [list(row) for row in rows]
    texts = [[_text(cell) for cell in row] for row in rows]
    head = [str(cell) for cell in headers] if headers else None
    everything = ([head] if head else []) + texts
    widths = natural_widths(everything)
    if not widths:
        return ""
    if max_width is not None:
        widths = shrink(widths, max_width - look.frame(len(widths)))
    aligns = alignments(rows, len(widths))
    lines = []
    if head:
        lines.append(_line(head, widths, aligns, look))
        if look.rule:
            lines.append(_rule(widths, look))
    lines.extend(_line(row, widths, aligns, look) for row in texts)
    return "\n".join(line.rstrip(" ") for line in lines)


def _text(cell):
    if cell is None:
        return ""
    return str(cell).replace("\t", "    ").replace("\n", " ")


def _line(cells, widths, aligns, look):
    cells = cells + [""] * (len(widths) - len(cells))
    parts = [pad(clip(c, w), w, a) for c, w, a in zip(cells, widths, aligns)]
    return look.left + look.between.join(parts) + look.right


def _rule(widths, look):
    bars = look.cross.join(look.rule * width for width in widths)
    left = look.left.replace(" ", look.rule) if look.rule == "─" else look.left
    right = look.right.replace(" ", look.rule) if look.rule == "─" else look.right
    return left + bars + right
