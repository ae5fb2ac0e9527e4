class ConfigError(Exception):
    """Something in the configuration does not make sense."""


class UnknownProfile(ConfigError):
    def __init__(self, name, known):
        self.name = name
        names = ", ".join(sorted(known)) or "none"
        super().__init__(f"unknown profile {name!r} (known: {names})")
