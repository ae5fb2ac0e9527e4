"""Values from environment variables."""

import json


def from_environment(environ, prefix):
    """Turn APP_LOG__LEVEL=debug into {"log": {"level": "debug"}}."""
    result = {}
    start = prefix.upper() + "_"
    for name in sorted(environ):
        if not name.startswith(start):
            continue
        *sections, key = name[len(start):].lower().split("__")
        target = result
        for section in sections:
            target = target.setdefault(section, {})
        target[key] = _value(environ[name])
    return result


def _value(text):
    try:
        return json.loads(text)
    except ValueError:
        return text
