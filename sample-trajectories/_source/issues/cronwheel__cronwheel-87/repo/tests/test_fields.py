import unittest

from cronwheel import CronError, CronExpression
from cronwheel.fields import DAY, MINUTE, MONTH, WEEKDAY


class FieldTests(unittest.TestCase):
    def test_star_and_step(self):
        self.assertEqual(sorted(MINUTE.parse("*/20")), [0, 20, 40])

    def test_list_and_range(self):
        self.assertEqual(sorted(DAY.parse("1,10-12")), [1, 10, 11, 12])

    def test_open_step(self):
        self.assertEqual(sorted(MINUTE.parse("50/4")), [50, 54, 58])

    def test_names(self):
        self.assertEqual(sorted(MONTH.parse("feb,Dec")), [2, 12])
        self.assertEqual(sorted(WEEKDAY.parse("mon-fri")), [1, 2, 3, 4, 5])

    def test_errors(self):
        for text in ("61", "5-1", "*/0", "x", ""):
            with self.subTest(text), self.assertRaises(CronError):
                MINUTE.parse(text)


class ExpressionTests(unittest.TestCase):
    def test_seven_is_sunday(self):
        self.assertEqual(CronExpression.parse("0 0 * * 7").weekdays, {0})

    def test_shortcut(self):
        self.assertEqual(CronExpression.parse("@monthly").days, {1})

    def test_five_fields(self):
        with self.assertRaises(CronError):
            CronExpression.parse("* * * *")


if __name__ == "__main__":
    unittest.main()
