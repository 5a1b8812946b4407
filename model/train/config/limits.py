"""Limits of single values in an experiment file, in the words of every complaint about one.

Owns the comparison and the message. Which limit a key has is said where the key is.
"""

import math

from model.errors import ConfigError


def at_least(name: str, value: float, minimum: float) -> None:
    """Refuse a value that is below its minimum, or not finite."""
    if not minimum <= value < math.inf:
        finite = ", and finite" if isinstance(value, float) else ""
        raise ConfigError(f"{name} is {value}; it must be at least {minimum}{finite}")


def at_most(name: str, value: int, maximum: int) -> None:
    """Refuse a value above what a checkpoint can have."""
    if value > maximum:
        raise ConfigError(f"{name} is {value}; a checkpoint has at most {maximum}")
