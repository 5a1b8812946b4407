"""Values of strangers' JSON, by their keys and types.

Owns how a value of a registry's answer is asked for; keys that are not asked for are ignored,
since registries grow. Does not own what the values mean.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from model.errors import RegistryError, shown

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """A JSON object, and where it stands.

    Attributes:
        url: The document, for errors.
        place: In the document: "models.de-en[0]".
        values: The object.
    """

    url: str
    place: str
    values: Mapping[str, object]

    def text(self, key: str) -> str:
        """A string that must be there.

        Raises:
            RegistryError: It is missing or none, as of all that must be there.
        """
        return self._needed(key, self.optional_text(key), "a string")

    def optional_text(self, key: str) -> str | None:
        """A string, or None where there is none that is not empty."""
        value = self.values.get(key)
        return value if isinstance(value, str) and value else None

    def optional_count(self, key: str) -> int | None:
        """An integer of at least 0, or None where there is none."""
        value = self.values.get(key)
        is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return value if is_count and isinstance(value, int) else None

    def count(self, key: str) -> int:
        """An integer of at least 0 that must be there."""
        return self._needed(key, self.optional_count(key), "a number of at least 0")

    def optional_number(self, key: str) -> float | None:
        """A finite number, or None where there is none, or one beyond all floats."""
        value = self.values.get(key)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return None
        return float(value) if abs(value) <= sys.float_info.max else None

    def object(self, key: str) -> "Fields":
        """An object that must be there."""
        return self._needed(key, self.optional_object(key), "an object")

    def optional_object(self, key: str) -> "Fields | None":
        """An object, or None where there is none."""
        return _object(self.url, self._inner(key), self.values.get(key))

    def objects(self, key: str) -> tuple["Fields", ...]:
        """The objects of a list; without one none, and what is no object is left out."""
        return objects_of(self.url, self._inner(key), self.values.get(key))

    def texts(self, key: str) -> tuple[str, ...]:
        """The strings of a list, or the one string that stands instead of it; else none."""
        value = self.values.get(key)
        items = value if isinstance(value, list) else [value]
        return tuple(item for item in items if isinstance(item, str) and item)

    def error(self, key: str, problem: str) -> RegistryError:
        """The error that a value cannot be used, to be raised."""
        return RegistryError(self.url, f"{self._inner(key)} {problem}")

    def _inner(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key

    def _needed(self, key: str, value: T | None, kind: str) -> T:
        if value is None:
            found = shown(self.values[key]) if key in self.values else "missing"
            raise self.error(key, f"is {found}; it must be {kind}")
        return value


def document(url: str, value: object) -> Fields:
    """The object that a document is.

    Raises:
        RegistryError: It is none.
    """
    found = _object(url, "", value)
    if found is None:
        raise RegistryError(url, f"is {shown(value)}; it must be an object")
    return found


def objects_of(url: str, place: str, value: object) -> tuple[Fields, ...]:
    """The objects of a list; of anything else none."""
    items: Sequence[object] = value if isinstance(value, list) else ()
    found = (_object(url, f"{place}[{index}]", item) for index, item in enumerate(items))
    return tuple(item for item in found if item is not None)


def _object(url: str, place: str, value: object) -> Fields | None:
    return Fields(url=url, place=place, values=value) if isinstance(value, dict) else None
