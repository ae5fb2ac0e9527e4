"""Splits amounts."""

from .money import Money


def allocate(amount, weights):
    """Split `amount` in proportion to `weights`; the parts add up to it.

    Cents that are left after rounding go to the parts that lost most by the
    rounding, the first ones first.
    """
    total = sum(weights)
    if total <= 0 or min(weights) < 0:
        raise ValueError("weights must not be negative and one must be positive")
    exact = [amount.cents * weight / total for weight in weights]
    parts = [int(value) for value in exact]
    left = amount.cents - sum(parts)
    by_loss = sorted(range(len(parts)), key=lambda i: parts[i] - exact[i])
    for i in by_loss[:left]:
        parts[i] += 1
    return [Money(part) for part in parts]
