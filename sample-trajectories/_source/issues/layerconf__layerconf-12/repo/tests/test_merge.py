import unittest

from layerconf import ConfigError, merge


class MergeTests(unittest.TestCase):
    def test_flat(self):
        self.assertEqual(merge({"a": 1, "b": 2}, {"b": 3}), {"a": 1, "b": 3})

    def test_sections(self):
        self.assertEqual(merge({"log": {"level": "info", "file": "x"}}, {"log": {"level": "debug"}}),
                         {"log": {"level": "debug", "file": "x"}})

    def test_section_replaces_value(self):
        self.assertEqual(merge({"log": "off"}, {"log": {"level": "debug"}}), {"log": {"level": "debug"}})

    def test_append(self):
        self.assertEqual(merge({"plugins": ["core"]}, {"plugins+": ["auth"]}), {"plugins": ["core", "auth"]})

    def test_take_away(self):
        self.assertEqual(merge({"plugins": ["core", "auth"]}, {"plugins-": ["core", "x"]}), {"plugins": ["auth"]})

    def test_append_to_nothing(self):
        self.assertEqual(merge({}, {"plugins+": ["auth"]}), {"plugins": ["auth"]})

    def test_append_to_text(self):
        with self.assertRaisesRegex(ConfigError, "log.plugins"):
            merge({"log": {"plugins": "core"}}, {"log": {"plugins+": ["auth"]}})

    def test_top_level_is_a_new_dictionary(self):
        base = {"a": 1}
        merge(base, {"a": 2})
        self.assertEqual(base, {"a": 1})


if __name__ == "__main__":
    unittest.main()
