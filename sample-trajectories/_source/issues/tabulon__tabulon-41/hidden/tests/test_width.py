import unittest

from tabulon import char_width, clip, display_width, pad, paint

LINK = "\x1b]8;;https://example.org/a\x1b\\click here\x1b]8;;\x1b\\"
LINK_BEL = "\x1b]8;;https://example.org/a\x07click here\x1b]8;;\x07"


class WidthTests(unittest.TestCase):
    def test_ascii(self):
        self.assertEqual(display_width("abc"), 3)

    def test_wide(self):
        self.assertEqual(display_width("日本"), 4)

    def test_combining(self):
        self.assertEqual(display_width("e\u0301"), 1)

    def test_control_character(self):
        self.assertEqual(char_width("\x07"), 0)

    def test_colour_takes_no_columns(self):
        self.assertEqual(display_width(paint("red", "bold", "red")), 3)

    def test_erase_line_takes_no_columns(self):
        self.assertEqual(display_width("ab\x1b[Kc\x1b[1;2H"), 3)

    def test_hyperlink_takes_no_columns(self):
        self.assertEqual(display_width(LINK), 10)
        self.assertEqual(display_width(LINK_BEL), 10)

    def test_wide_and_coloured(self):
        self.assertEqual(display_width(paint("日本", "green")), 4)


class PadTests(unittest.TestCase):
    def test_sides(self):
        self.assertEqual(pad("ab", 4), "ab  ")
        self.assertEqual(pad("ab", 4, "right"), "  ab")
        self.assertEqual(pad("ab", 5, "center"), " ab  ")

    def test_unknown(self):
        with self.assertRaises(ValueError):
            pad("ab", 4, "middle")

    def test_coloured(self):
        self.assertEqual(pad(paint("ab", "red"), 4), "\x1b[31mab\x1b[0m  ")


class ClipTests(unittest.TestCase):
    def test_short_text_stays(self):
        self.assertEqual(clip("abc", 3), "abc")

    def test_cut(self):
        self.assertEqual(clip("abcdef", 4), "abc…")

    def test_wide_character_does_not_overflow(self):
        self.assertEqual(clip("日本語", 4), "日…")

    def test_coloured_cell_that_fits_stays(self):
        text = paint("abc", "red")
        self.assertEqual(clip(text, 3), text)

    def test_colour_is_switched_off_after_the_marker(self):
        self.assertEqual(clip(paint("abcdef", "red"), 4), "\x1b[31mabc…\x1b[0m")

    def test_no_reset_where_no_colour_is_on(self):
        self.assertEqual(clip("ab" + paint("cd", "red") + "efgh", 6), "ab\x1b[31mcd\x1b[0me…")
        self.assertEqual(clip("abcdef" + paint("gh", "red"), 4), "abc…")

    def test_short_reset_counts(self):
        self.assertEqual(clip("\x1b[31mab\x1b[mcdef", 5), "\x1b[31mab\x1b[mcd…")

    def test_hyperlink_is_not_cut_through(self):
        self.assertNotIn("https://example.org…", clip(LINK, 6))
        self.assertTrue(clip(LINK, 6).startswith("\x1b]8;;https://example.org/a\x1b\\click…"))


if __name__ == "__main__":
    unittest.main()
