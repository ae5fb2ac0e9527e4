import unittest

from layerconf import ConfigError, Profiles, UnknownProfile


def sample():
    profiles = Profiles({"log": {"level": "info", "colour": False}, "plugins": ["core"]})
    profiles.add("dev", {"log": {"level": "debug"}, "plugins+": ["reload"]})
    profiles.add("dev-eu", {"region": "eu"}, extends="dev")
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
            sample().load("prod")

    def test_circle(self):
        profiles = Profiles()
        profiles.add("a", {}, extends="b")
        profiles.add("b", {}, extends="a")
        with self.assertRaises(ConfigError):
            profiles.load("a")

    def test_environment_is_on_top(self):
        config = sample().load("dev", environ={"APP_LOG__LEVEL": "error", "APP_PORT": "8080", "HOME": "/"})
        self.assertEqual((config["log"]["level"], config["port"]), ("error", 8080))


if __name__ == "__main__":
    unittest.main()
