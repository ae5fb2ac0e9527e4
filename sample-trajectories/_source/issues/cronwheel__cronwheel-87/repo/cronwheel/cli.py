"""Command line: print the next moments of an expression."""

import argparse
import sys
from datetime import datetime

from .errors import CronError
from .expression import CronExpression
from .schedule import upcoming


def main(argv=None, out=None):
    out = out or sys.stdout
    parser = argparse.ArgumentParser(prog="cronwheel", description=__doc__)
    parser.add_argument("expression", help='five fields in quotes, or "@daily"')
    parser.add_argument("-n", "--count", type=int, default=5)
    parser.add_argument("--from", dest="start", type=datetime.fromisoformat, default=None)
    args = parser.parse_args(argv)
    try:
        expression = CronExpression.parse(args.expression)
        for moment in upcoming(expression, args.start or datetime.now(), args.count):
            print(moment.strftime("%a %Y-%m-%d %H:%M"), file=out)
    except CronError as err:
        print(f"cronwheel: {err}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
