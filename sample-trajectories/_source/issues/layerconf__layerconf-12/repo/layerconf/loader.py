"""Reads layers from files."""

import json
import tomllib
from pathlib import Path

from .errors import ConfigError

READERS = {".json": json.loads, ".toml": tomllib.loads}


def read(path):
    """Return the content of a JSON or TOML file as a dictionary."""
    path = Path(path)
    try:
        reader = READERS[path.suffix]
    except KeyError:
        known = ", ".join(sorted(READERS))
        raise ConfigError(f"{path}: cannot read {path.suffix!r} files (known: {known})") from None
    try:
        values = reader(path.read_text(encoding="utf-8"))
    except ValueError as err:
        raise ConfigError(f"{path}: {err}") from err
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected a table at the top")
    return values
