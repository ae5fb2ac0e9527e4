"""Named layers that build on one another."""

from .env import from_environment
from .errors import ConfigError, UnknownProfile
from .merge import merge


class Profiles:
    """The defaults and everything that can be put on top of them."""

    def __init__(self, defaults=None):
        self.defaults = defaults or {}
        self._profiles = {}

    def add(self, name, values, extends=None):
        """Add a profile; `extends` names the one it builds on."""
        if name in self._profiles:
            raise ConfigError(f"profile {name!r} is there twice")
        self._profiles[name] = (extends, values)

    def names(self):
        return sorted(self._profiles)

    def chain(self, name):
        """Return the names from the lowest profile up to `name`."""
        found = []
        while name is not None:
            if name not in self._profiles:
                raise UnknownProfile(name, self._profiles)
            if name in found:
                raise ConfigError(f"profile {name!r} extends itself")
            found.append(name)
            name = self._profiles[name][0]
        return found[::-1]

    def load(self, name=None, environ=None, prefix="APP"):
        """Return the configuration of a profile as one dictionary."""
        result = merge(self.defaults, {})
        for part in self.chain(name):
            result = merge(result, self._profiles[part][1])
        if environ is not None:
            result = merge(result, from_environment(environ, prefix))
        return result
