import unittest
from datetime import datetime

from cronwheel import CronExpression, NeverFires, between, next_after, upcoming


def after(text, *start):
    return next_after(CronExpression.parse(text), datetime(*start))


class NextTests(unittest.TestCase):
    def test_every_minute(self):
        self.assertEqual(after("* * * * *", 2025, 1, 1, 8, 30, 12), datetime(2025, 1, 1, 8, 31))

    def test_later_today(self):
        self.assertEqual(after("45 17 * * *", 2025, 1, 1, 8, 30), datetime(2025, 1, 1, 17, 45))

    def test_weekday(self):
        self.assertEqual(after("30 4 * * mon", 2025, 1, 1), datetime(2025, 1, 6, 4, 30))

    def test_never(self):
        with self.assertRaises(NeverFires):
            after("0 0 30 2 *", 2025, 1, 1)

    def test_leap_day(self):
        self.assertEqual(after("0 0 29 2 *", 2025, 2, 28, 23, 59), datetime(2028, 2, 29))


class ManyTests(unittest.TestCase):
    def test_upcoming(self):
        days = upcoming(CronExpression.parse("@daily"), datetime(2025, 2, 27), 3)
        self.assertEqual([d.day for d in days], [28, 1, 2])

    def test_between(self):
        found = list(between(CronExpression.parse("*/20 * * * *"), datetime(2025, 1, 1), datetime(2025, 1, 1, 1)))
        self.assertEqual([m.minute for m in found], [20, 40])


if __name__ == "__main__":
    unittest.main()
