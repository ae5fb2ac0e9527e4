"""Amounts in whole cents."""

import re
from dataclasses import dataclass

_AMOUNT = re.compile(r"([+-]?)(\d+)(?:\.(\d{1,2}))?")


@dataclass(frozen=True, order=True)
class Money:
    cents: int

    @classmethod
    def parse(cls, text):
        found = _AMOUNT.fullmatch(text.strip())
        if not found:
            raise ValueError(f"not an amount: {text!r}")
        sign, whole, part = found.groups()
        cents = int(whole) * 100 + int((part or "0").ljust(2, "0"))
        return cls(-cents if sign == "-" else cents)

    def __add__(self, other):
        return Money(self.cents + other.cents)

    def __sub__(self, other):
        return Money(self.cents - other.cents)

    def __neg__(self):
        return Money(-self.cents)

    def __bool__(self):
        return self.cents != 0

    def __str__(self):
        sign = "-" if self.cents < 0 else ""
        whole, part = divmod(abs(self.cents), 100)
        return f"{sign}{whole}.{part:02}"
