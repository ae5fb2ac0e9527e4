import unittest

from tabulon import display_width, paint, render


class RenderTests(unittest.TestCase):
    def test_ascii(self):
        text = render([["ada", 36], ["grace", 45]], headers=["name", "age"])
        self.assertEqual(
            text.split("\n"),
            ["name  | age", "------+----", "ada   |  36", "grace |  45"],
        )

    def test_short_rows_are_filled(self):
        text = render([["a"], ["b", "c"]], style="plain")
        self.assertEqual(text, "a\nb  c")

    def test_max_width(self):
        text = render([["a long cell here", "b"]], style="plain", max_width=10)
        self.assertEqual(text, "a long…  b")

    def test_unknown_style(self):
        with self.assertRaises(ValueError):
            render([["a"]], style="fancy")

    def test_straight_border_with_colours(self):
        rows = [["build", paint("ok", "green")], ["tests", paint("3 failed", "bold", "red")], ["deploy", "skipped"]]
        text = render(rows, headers=["step", "status"], style="box")
        self.assertEqual({display_width(line) for line in text.split("\n")}, {21})

    def test_colour_does_not_leak(self):
        rows = [[paint("a long red cell", "red"), "b"]]
        text = render(rows, style="plain", max_width=10)
        self.assertEqual(text, "\x1b[31ma long…\x1b[0m  b")


if __name__ == "__main__":
    unittest.main()
