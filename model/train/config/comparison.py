"""Comparison of configurations: which keys are not at their defaults, and where two differ.

Owns the two comparisons of dataclasses, by keys. Does not own any class, nor which keys matter to
whom.
"""

import dataclasses
from collections.abc import Iterator, Set

from model.conversion import is_default


def explicit_values(value: object, *, left_out: Set[str] = frozenset()) -> object:
    """The keys of a configuration that are not at their defaults, with their values, in order.

    A key that is added one day, with a default, changes nothing in this list.

    Args:
        value: A dataclass, or what one holds.
        left_out: More keys that are left out, at any depth.
    """
    if isinstance(value, tuple):
        return tuple(explicit_values(item, left_out=left_out) for item in value)
    if not dataclasses.is_dataclass(value):
        return float(value) if type(value) is int else value  # 2 copies are 2.0
    return [
        (item.name, explicit_values(getattr(value, item.name), left_out=left_out))
        for item in dataclasses.fields(value)
        if item.name not in left_out and not is_default(item, getattr(value, item.name))
    ]


def differences(
    wanted: object, found: object, key: str, *, left_out: Set[str] = frozenset()
) -> Iterator[tuple[str, str]]:
    """Where two values of one annotation differ: keys, and the two values in words.

    Args:
        wanted: A dataclass, or what one holds.
        found: Another, which the words call "the run's".
        key: Where both stand, such as "network".
        left_out: Keys that may differ, at any depth.

    Yields:
        Such as ("network.d_ff", "is 32, the run's is 16").
    """
    if dataclasses.is_dataclass(wanted) and type(wanted) is type(found):
        for item in dataclasses.fields(wanted):
            if item.name not in left_out:
                values = getattr(wanted, item.name), getattr(found, item.name)
                yield from differences(*values, f"{key}.{item.name}", left_out=left_out)
    elif dataclasses.is_dataclass(wanted) or dataclasses.is_dataclass(found):
        words = ["not set" if value is None else "set" for value in (wanted, found)]
        yield key, f"is {words[0]}, the run's is {words[1]}"
    elif _holds_dataclasses(wanted) or _holds_dataclasses(found):
        assert isinstance(wanted, tuple)
        assert isinstance(found, tuple)
        for number, values in enumerate(zip(wanted, found, strict=False)):
            yield from differences(*values, f"{key}[{number}]", left_out=left_out)
        if len(wanted) != len(found):
            yield key, f"has {len(wanted)} entries, the run's has {len(found)}"
    elif wanted != found:
        shown = [list(value) if isinstance(value, tuple) else value for value in (wanted, found)]
        yield key, f"is {shown[0]!r}, the run's is {shown[1]!r}"


def _holds_dataclasses(value: object) -> bool:
    return isinstance(value, tuple) and any(map(dataclasses.is_dataclass, value))
