"""Puts one layer on top of another."""


def merge(base, layer):
    """Return `base` with the values of `layer` on top of it."""
    result = dict(base)
    for key, value in layer.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            value = merge(result[key], value)
        result[key] = value
    return result
