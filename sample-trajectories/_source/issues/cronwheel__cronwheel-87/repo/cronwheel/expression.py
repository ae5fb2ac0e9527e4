"""An expression with its five fields."""

from dataclasses import dataclass

from . import fields
from .errors import CronError

SHORTCUTS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}


@dataclass(frozen=True)
class CronExpression:
    minutes: frozenset
    hours: frozenset
    days: frozenset
    months: frozenset
    weekdays: frozenset
    any_day: bool
    any_weekday: bool
    text: str

    @classmethod
    def parse(cls, text):
        words = SHORTCUTS.get(text.strip().lower(), text).split()
        if len(words) != 5:
            raise CronError(f"expected five fields, got {len(words)}: {text!r}")
        minute, hour, day, month, weekday = words
        weekdays = fields.WEEKDAY.parse(weekday)
        if 7 in weekdays:
            weekdays = (weekdays - {7}) | {0}
        return cls(
            minutes=fields.MINUTE.parse(minute),
            hours=fields.HOUR.parse(hour),
            days=fields.DAY.parse(day),
            months=fields.MONTH.parse(month),
            weekdays=weekdays,
            any_day=day.startswith("*"),
            any_weekday=weekday.startswith("*"),
            text=text,
        )

    def fits_day(self, moment):
        """Does the day fit the day of month and the day of week?"""
        day = moment.day in self.days
        weekday = moment.isoweekday() % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return day and weekday
        return day or weekday

    def fits(self, moment):
        """Does the expression fire in the minute of `moment`?"""
        return (
            moment.month in self.months
            and self.fits_day(moment)
            and moment.hour in self.hours
            and moment.minute in self.minutes
        )
