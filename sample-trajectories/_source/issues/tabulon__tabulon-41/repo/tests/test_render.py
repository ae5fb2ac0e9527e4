import unittest

from tabulon import render


class RenderTests(unittest.TestCase):
    def test_ascii(self):
        text = render([["ada", 36], ["grace", 45]], headers=["name", "age"])
        self.assertEqual(
            text.split("\n"),
            ["name  | age", "------+----", "ada   |  36", "grace |  45"],
        )

    def test_box(self):
        text = render([["ä", "x"]], headers=["a", "b"], style="box")
        self.assertEqual(text.split("\n"), ["│ a │ b │", "│───┼───│", "│ ä │ x │"])

    def test_short_rows_are_filled(self):
        text = render([["a"], ["b", "c"]], style="plain")
        self.assertEqual(text, "a\nb  c")

    def test_max_width(self):
        text = render([["a long cell here", "b"]], style="plain", max_width=10)
        self.assertEqual(text, "a long…  b")

    def test_unknown_style(self):
        with self.assertRaises(ValueError):
            render([["a"]], style="fancy")


if __name__ == "__main__":
    unittest.main()
