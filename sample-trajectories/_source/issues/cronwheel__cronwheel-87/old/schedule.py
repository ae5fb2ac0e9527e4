"""Looks for the moments at which an expression fires."""

from datetime import timedelta

from .errors import NeverFires

YEARS_TO_SEARCH = 8


def next_after(expression, start):
    """Return the first moment after `start` at which `expression` fires."""
    moment = start.replace(second=0, microsecond=0) + timedelta(minutes=1)
    last_year = start.year + YEARS_TO_SEARCH
    while moment.year <= last_year:
        if expression.fits(moment):
            return moment
        moment += timedelta(minutes=1)
    raise NeverFires(f"{expression.text!r} does not fire within {YEARS_TO_SEARCH} years")


def upcoming(expression, start, count):
    """Return the next `count` moments after `start`."""
    found = []
    for _ in range(count):
        start = next_after(expression, start)
        found.append(start)
    return found


def between(expression, start, end):
    """Yield the moments after `start` and before `end`."""
    moment = next_after(expression, start)
    while moment < end:
        yield moment
        moment = next_after(expression, moment)
