"""Configuration in layers: defaults, profiles, environment."""

from .env import from_environment
from .errors import ConfigError, UnknownProfile
from .loader import read
from .merge import merge
from .profiles import Profiles

__all__ = ["ConfigError", "Profiles", "UnknownProfile", "from_environment", "merge", "read"]
__version__ = "0.9.2"
