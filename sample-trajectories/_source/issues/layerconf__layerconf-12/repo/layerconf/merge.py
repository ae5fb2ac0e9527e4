"""Puts one layer on top of another."""

from .errors import ConfigError


def merge(base, layer):
    """Return `base` with the values of `layer` on top of it."""
    result = dict(base)
    _merge_into(result, layer, "")
    return result


def _merge_into(target, layer, where):
    for key, value in layer.items():
        path = f"{where}.{key}" if where else key
        if key.endswith("+"):
            _list(target, key[:-1], path).extend(value)
        elif key.endswith("-"):
            items = _list(target, key[:-1], path)
            for item in value:
                if item in items:
                    items.remove(item)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge_into(target[key], value, path)
        else:
            target[key] = value


def _list(target, name, path):
    items = target.setdefault(name, [])
    if not isinstance(items, list):
        raise ConfigError(f"{path}: {name!r} is not a list")
    return items
