import unittest

from tabulon import char_width, clip, display_width, pad


class WidthTests(unittest.TestCase):
    def test_ascii(self):
        self.assertEqual(display_width("abc"), 3)

    def test_wide(self):
        self.assertEqual(display_width("日本"), 4)

    def test_combining(self):
        self.assertEqual(display_width("e\u0301"), 1)

    def test_control_character(self):
        self.assertEqual(char_width("\x07"), 0)


class PadTests(unittest.TestCase):
    def test_sides(self):
        self.assertEqual(pad("ab", 4), "ab  ")
        self.assertEqual(pad("ab", 4, "right"), "  ab")
        self.assertEqual(pad("ab", 5, "center"), " ab  ")

    def test_unknown(self):
        with self.assertRaises(ValueError):
            pad("ab", 4, "middle")


class ClipTests(unittest.TestCase):
    def test_short_text_stays(self):
        self.assertEqual(clip("abc", 3), "abc")

    def test_cut(self):
        self.assertEqual(clip("abcdef", 4), "abc…")

    def test_wide_character_does_not_overflow(self):
        self.assertEqual(clip("日本語", 4), "日…")


if __name__ == "__main__":
    unittest.main()
