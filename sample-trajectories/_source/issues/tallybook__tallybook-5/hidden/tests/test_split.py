import random
import unittest

from tallybook import Book, Money, allocate


def cents(amount, *weights):
    return [part.cents for part in allocate(Money(amount), list(weights))]


class AllocateTests(unittest.TestCase):
    def test_even(self):
        self.assertEqual(cents(900, 1, 1, 1), [300, 300, 300])

    def test_first_ones_get_the_rest(self):
        self.assertEqual(cents(1000, 1, 1, 1), [334, 333, 333])

    def test_most_lost_first(self):
        self.assertEqual(cents(100, 1, 1, 5), [14, 14, 72])

    def test_zero_weight(self):
        self.assertEqual(cents(101, 0, 1, 1), [0, 51, 50])

    def test_negative_without_rest(self):
        self.assertEqual(cents(-900, 1, 2), [-300, -600])

    def test_bad_weights(self):
        for weights in ([0, 0], [1, -1]):
            with self.subTest(weights), self.assertRaises(ValueError):
                allocate(Money(1), weights)

    def test_refund_adds_up(self):
        self.assertEqual(sum(cents(-1000, 1, 1, 1)), -1000)

    def test_refund_is_the_mirror_image(self):
        self.assertEqual(cents(-1000, 1, 1, 1), [-334, -333, -333])
        self.assertEqual(cents(-100, 1, 1, 4), [-17, -17, -66])

    def test_equal_loss_goes_in_order(self):
        self.assertEqual(cents(100, 1, 1, 4), [17, 17, 66])

    def test_large_amount(self):
        self.assertEqual(cents(10**18, 1, 1, 1), [333333333333333334, 333333333333333333, 333333333333333333])
        self.assertEqual(sum(cents(10**25 + 7, 3, 1, 5)), 10**25 + 7)

    def test_always_adds_up(self):
        random.seed(5)
        for _ in range(500):
            amount = random.randrange(-10**6, 10**6)
            weights = [random.randrange(0, 9) for _ in range(4)] + [1]
            parts = cents(amount, *weights)
            self.assertEqual(sum(parts), amount)
            self.assertEqual([-part for part in parts], cents(-amount, *weights))
            self.assertTrue(all(part == 0 for part, weight in zip(parts, weights) if weight == 0))


class RefundTests(unittest.TestCase):
    def test_book_stays_even(self):
        book = Book(["ann", "bob", "cem"])
        book.spend("ann", Money.parse("-10.00"))
        self.assertTrue(book.is_even())

    def test_charge_and_refund(self):
        book = Book(["ann", "bob", "cem"])
        book.spend("ann", Money.parse("10.00"), {"ann": 2, "bob": 3, "cem": 1})
        book.spend("ann", Money.parse("-10.00"), {"ann": 2, "bob": 3, "cem": 1})
        self.assertEqual([book.balance(n).cents for n in ("ann", "bob", "cem")], [0, 0, 0])


if __name__ == "__main__":
    unittest.main()
