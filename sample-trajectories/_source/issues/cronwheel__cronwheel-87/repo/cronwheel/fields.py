"""Reads one field of an expression into the set of values it stands for."""

from dataclasses import dataclass

from .errors import CronError

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True)
class Field:
    name: str
    low: int
    high: int
    names: tuple = ()

    def parse(self, text):
        """Return the values of `text`, such as "1-5,*/20"."""
        values = set()
        for part in text.split(","):
            values.update(self._part(part))
        return frozenset(values)

    def _part(self, part):
        span, slash, step = part.partition("/")
        if slash and not (step.isdigit() and int(step) > 0):
            raise CronError(f"{self.name}: bad step in {part!r}")
        if span == "*":
            first, last = self.low, self.high
        elif "-" in span:
            first, last = (self._value(word) for word in span.split("-", 1))
            if first > last:
                raise CronError(f"{self.name}: {span!r} runs backwards")
        else:
            first = self._value(span)
            last = self.high if slash else first
        return range(first, last + 1, int(step) if slash else 1)

    def _value(self, word):
        word = word.lower()
        if word in self.names:
            return self.names.index(word) + self.low
        if not word.isdigit() or not self.low <= int(word) <= self.high:
            raise CronError(f"{self.name}: {word!r} is not in {self.low}-{self.high}")
        return int(word)


MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day of month", 1, 31)
MONTH = Field("month", 1, 12, MONTHS)
WEEKDAY = Field("day of week", 0, 7, DAYS)
