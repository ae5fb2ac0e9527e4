import unittest

from tallybook import Money, allocate


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


if __name__ == "__main__":
    unittest.main()
