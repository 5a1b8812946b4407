"""Problems of a foreign model's parts, collected so that all are told at once."""

from collections.abc import Callable
from typing import TypeVar

from model.errors import ConfigError, ForeignModelError

T = TypeVar("T")


def attempted(problems: list[str], read: Callable[[], T]) -> T | None:
    """What `read` gives; None, and its problems in the list, where it cannot be read."""
    try:
        return read()
    except ForeignModelError as error:
        problems += [f"{error.path.name}: {problem}" for problem in error.problems]
    except ConfigError as error:
        problems.append(str(error))
    return None
