"""Command line: read CSV from a file or from stdin, print a table."""

import argparse
import csv
import re
import sys

from .ansi import paint
from .render import STYLES, render


def main(argv=None, stdin=None, stdout=None):
    stdin = stdin or sys.stdin
    stdout = stdout or sys.stdout
    args = _parser().parse_args(argv)
    source = open(args.file, encoding="utf-8", newline="") if args.file else stdin
    with source:
        rows = list(csv.reader(source, delimiter=args.delimiter))
    if not rows:
        return 0
    head, body = rows[0], rows[1:]
    if args.highlight:
        pattern = re.compile(args.highlight)
        body = [[_mark(cell, pattern) for cell in row] for row in body]
    print(render(body, head, style=args.style, max_width=args.width), file=stdout)
    return 0


def _mark(cell, pattern):
    return pattern.sub(lambda m: paint(m.group(), "bold", "yellow"), cell)


def _parser():
    parser = argparse.ArgumentParser(prog="tabulon", description=__doc__)
    parser.add_argument("file", nargs="?", help="a CSV file (default: stdin)")
    parser.add_argument("-d", "--delimiter", default=",")
    parser.add_argument("-s", "--style", choices=sorted(STYLES), default="ascii")
    parser.add_argument("-w", "--width", type=int, help="widest line allowed")
    parser.add_argument("--highlight", metavar="REGEX", help="colour what matches")
    return parser


if __name__ == "__main__":
    sys.exit(main())
