import unittest
from datetime import datetime, timedelta

from cronwheel import CronExpression, NeverFires, between, next_after, upcoming


def after(text, *start):
    return next_after(CronExpression.parse(text), datetime(*start))


class Counting:
    """Counts how many moments a search looks at."""

    def __init__(self, text):
        self.inner = CronExpression.parse(text)
        self.looks = 0

    def __getattr__(self, name):
        if name == "months":
            self.looks += 1
        return getattr(self.inner, name)

    def fits(self, moment):
        self.looks += 1
        return self.inner.fits(moment)


class NextTests(unittest.TestCase):
    def test_every_minute(self):
        self.assertEqual(after("* * * * *", 2025, 1, 1, 8, 30, 12), datetime(2025, 1, 1, 8, 31))

    def test_later_today(self):
        self.assertEqual(after("45 17 * * *", 2025, 1, 1, 8, 30), datetime(2025, 1, 1, 17, 45))

    def test_next_hour(self):
        self.assertEqual(after("0 9 * * *", 2025, 3, 10, 8, 30), datetime(2025, 3, 10, 9, 0))

    def test_day_starts_at_midnight(self):
        self.assertEqual(after("30 4 * * mon", 2025, 3, 9, 10, 45), datetime(2025, 3, 10, 4, 30))

    def test_next_month(self):
        self.assertEqual(after("30 4 1 * *", 2025, 1, 31, 10, 45), datetime(2025, 2, 1, 4, 30))

    def test_month_that_is_restricted(self):
        self.assertEqual(after("15 0 * 3 *", 2025, 1, 31, 10, 45), datetime(2025, 3, 1, 0, 15))

    def test_next_year(self):
        self.assertEqual(after("@yearly", 2025, 6, 15, 13, 7), datetime(2026, 1, 1))

    def test_weekday(self):
        self.assertEqual(after("30 4 * * mon", 2025, 1, 1), datetime(2025, 1, 6, 4, 30))

    def test_either_day(self):
        self.assertEqual(after("0 6 13 * fri", 2025, 3, 10, 12, 0), datetime(2025, 3, 13, 6, 0))
        self.assertEqual(after("0 6 13 * fri", 2025, 3, 13, 12, 0), datetime(2025, 3, 14, 6, 0))

    def test_never(self):
        with self.assertRaises(NeverFires):
            after("0 0 30 2 *", 2025, 1, 1)

    def test_leap_day(self):
        self.assertEqual(after("0 0 29 2 *", 2025, 2, 28, 23, 59), datetime(2028, 2, 29))

    def test_search_stays_short(self):
        expression = Counting("0 0 29 2 *")
        next_after(expression, datetime(2025, 3, 1))
        self.assertLess(expression.looks, 5000)

    def test_same_as_minute_by_minute(self):
        for text in ("*/7 3-5 * * *", "59 23 31 * *", "0 12 * 2 1", "5 0 28-31 2,4 *"):
            expression = CronExpression.parse(text)
            start = datetime(2024, 1, 30, 22, 41)
            moment = start + timedelta(minutes=1)
            while not expression.fits(moment):
                moment += timedelta(minutes=1)
            with self.subTest(text):
                self.assertEqual(next_after(expression, start), moment)


class ManyTests(unittest.TestCase):
    def test_upcoming(self):
        days = upcoming(CronExpression.parse("@daily"), datetime(2025, 2, 27), 3)
        self.assertEqual([d.day for d in days], [28, 1, 2])

    def test_between(self):
        found = list(between(CronExpression.parse("*/20 * * * *"), datetime(2025, 1, 1), datetime(2025, 1, 1, 1)))
        self.assertEqual([m.minute for m in found], [20, 40])

    def test_between_from_the_middle_of_an_hour(self):
        found = list(between(CronExpression.parse("0 */2 * * *"), datetime(2025, 1, 1, 7, 50), datetime(2025, 1, 1, 12)))
        self.assertEqual([m.hour for m in found], [8, 10])


if __name__ == "__main__":
    unittest.main()
