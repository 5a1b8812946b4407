"""Problems of a foreign model's parts, collected so that all are told at once."""

from collections.abc import Callable
from typing import TypeVar

from model.errors import ConfigError, ForeignModelError

T = TypeVar("T")

NAME_DIRECTIONS = "name the directions"
"""What a person has to do where files do not say what a network translates; a command that prints
the problem says behind it which of its flags does."""


def attempted(problems: list[str], read: Callable[[], T]) -> T | None:
    """What `read` gives; None, and its problems in the list, where it cannot be read."""
    try:
        return read()
    except ForeignModelError as error:
        problems += [f"{error.path.name}: {problem}" for problem in error.problems]
    except ConfigError as error:
        problems.append(str(error))
    return None
