"""Joining of the groups' lists into one: languages, pairs, models, glossaries, counts.

Pure: plain values in, plain values out. Which paths are lists, and whom they are asked of, is
`service.router.app`.
"""

from collections.abc import Sequence
from typing import Any

_NAMES = ("code", "lang", "language")
"""By which entries are the same, where they have one of these."""


def joined(contents: Sequence[Any]) -> Any:  # any JSON
    """One answer of several of the same shape, at least one.

    Lists follow each other, and what is the same in several stands once; entries of one language
    become one, which has what any has. Objects are joined member by member. Of true and false it
    is true; numbers and texts are the first one's.
    """
    first = contents[0]
    if isinstance(first, list):
        return _joined_lists([one for one in contents if isinstance(one, list)])
    if isinstance(first, dict):
        objects = [one for one in contents if isinstance(one, dict)]
        names = dict.fromkeys(name for one in objects for name in one)
        return {name: joined([one[name] for one in objects if name in one]) for name in names}
    if isinstance(first, bool):
        return any(one is True for one in contents)
    return first


def summed(contents: Sequence[Any]) -> Any:  # any JSON
    """Likewise of what callers have used: counts are sums, limits are no sums."""
    found = joined(contents)
    if isinstance(found, dict):
        for name in found:
            if name.endswith("_count"):
                found[name] = sum(int(one.get(name, 0)) for one in contents)
    return found


def _joined_lists(lists: Sequence[list[Any]]) -> list[Any]:
    found: list[Any] = []
    places: dict[str, int] = {}
    for entry in (entry for one in lists for entry in one):
        name = _name_of(entry)
        if name is None:
            if entry not in found:
                found.append(entry)
        elif name in places:
            found[places[name]] = joined([found[places[name]], entry])
        else:
            places[name] = len(found)
            found.append(entry)
    return found


def _name_of(entry: object) -> str | None:
    if not isinstance(entry, dict):
        return None
    return next((str(entry[name]) for name in _NAMES if name in entry), None)
