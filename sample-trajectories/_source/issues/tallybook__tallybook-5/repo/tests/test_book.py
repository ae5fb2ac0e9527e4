import unittest

from tallybook import Book, Money


class BookTests(unittest.TestCase):
    def test_spend(self):
        book = Book(["ann", "bob", "cem"])
        book.spend("ann", Money.parse("10"))
        self.assertEqual(str(book.balance("ann")), "6.66")
        self.assertEqual(str(book.balance("bob")), "-3.33")
        self.assertTrue(book.is_even())

    def test_settle(self):
        book = Book(["ann", "bob"])
        book.spend("ann", Money.parse("7.50"), {"bob": 1})
        self.assertEqual(book.settle(), [("bob", "ann", Money(750))])

    def test_stranger(self):
        with self.assertRaises(KeyError):
            Book(["ann"]).spend("zoe", Money(1))

    def test_amounts(self):
        self.assertEqual(Money.parse("-0.5").cents, -50)
        self.assertEqual(str(Money(-1205)), "-12.05")


if __name__ == "__main__":
    unittest.main()
