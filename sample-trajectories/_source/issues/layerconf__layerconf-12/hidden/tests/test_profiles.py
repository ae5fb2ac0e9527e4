import unittest

from layerconf import ConfigError, Profiles, UnknownProfile, merge


def sample():
    profiles = Profiles({"log": {"level": "info", "colour": False}, "plugins": ["core"]})
    profiles.add("dev", {"log": {"level": "debug"}, "plugins+": ["reload"]})
    profiles.add("dev-eu", {"region": "eu"}, extends="dev")
    profiles.add("prod", {"workers": 8, "mirrors": ["a", "b"], "cache": {"size": 10, "tags": ["x"]}})
    return profiles


class ProfileTests(unittest.TestCase):
    def test_defaults(self):
        self.assertEqual(sample().load()["plugins"], ["core"])

    def test_profile(self):
        self.assertEqual(sample().load("dev")["log"], {"level": "debug", "colour": False})

    def test_extends(self):
        self.assertEqual(sample().chain("dev-eu"), ["dev", "dev-eu"])
        self.assertEqual(sample().load("dev-eu")["region"], "eu")

    def test_unknown(self):
        with self.assertRaisesRegex(UnknownProfile, "dev, dev-eu"):
            sample().load("staging")

    def test_circle(self):
        profiles = Profiles()
        profiles.add("a", {}, extends="b")
        profiles.add("b", {}, extends="a")
        with self.assertRaises(ConfigError):
            profiles.load("a")

    def test_environment_is_on_top(self):
        config = sample().load("dev", environ={"APP_LOG__LEVEL": "error", "APP_PORT": "8080", "HOME": "/"})
        self.assertEqual((config["log"]["level"], config["port"]), ("error", 8080))


class IsolationTests(unittest.TestCase):
    def test_section_does_not_leak(self):
        profiles = sample()
        profiles.load("dev")
        self.assertEqual(profiles.load("prod")["log"]["level"], "info")

    def test_list_does_not_leak(self):
        profiles = sample()
        profiles.load("dev")
        self.assertEqual(profiles.load("prod")["plugins"], ["core"])

    def test_twice_is_the_same(self):
        profiles = sample()
        self.assertEqual(profiles.load("dev-eu"), profiles.load("dev-eu"))

    def test_environment_does_not_stay(self):
        profiles = sample()
        profiles.load("dev", environ={"APP_LOG__COLOUR": "true"})
        self.assertFalse(profiles.load("dev")["log"]["colour"])

    def test_result_may_be_changed(self):
        profiles = sample()
        profiles.load()["plugins"].append("mine")
        profiles.load()["log"]["level"] = "off"
        self.assertEqual(profiles.load(), sample().load())

    def test_values_of_the_profile_may_be_changed(self):
        profiles = sample()
        config = profiles.load("prod")
        config["mirrors"].append("c")
        config["cache"]["size"] = 0
        config["cache"]["tags"].clear()
        self.assertEqual(profiles.load("prod"), sample().load("prod"))

    def test_taking_away_does_not_leak(self):
        base = {"a": {"plugins": ["core", "auth"]}}
        merge(base, {"a": {"plugins-": ["core"]}})
        self.assertEqual(base, {"a": {"plugins": ["core", "auth"]}})


if __name__ == "__main__":
    unittest.main()
