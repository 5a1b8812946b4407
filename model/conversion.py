"""Frozen dataclasses from parsed JSON or YAML: every problem found at once, with its place.

Owns the conversion by the type hints of a dataclass, strictly: a number is no text, a truth value
is no number, and a key that a dataclass does not have is an error. What is just as it should be is
made here; of anything else Pydantic says what is wrong with it, which takes a fifth of a second and
10 MiB to import. Does not own the parsing (`model.checkpoint.description.strict_json`,
`model.train.config.yaml_config`) or the limits of values, which dataclasses check when they are
made. Imports no torch.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from model.errors import ConfigError, shown

if TYPE_CHECKING:  # imported where something is wrong
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

T = TypeVar("T")
Location = tuple[str | int, ...]
"""Keys of mappings and numbers of list items, from the outside in."""

_PLAIN = (str, bool, int, float)
_MAX_EXACT = 2**53
"""Up to here every integer is a floating-point number, too."""
_MAX_KEY_CHARACTERS = 200
_WANTED: Mapping[str, str] = {
    "bool_type": "true or false",
    "dataclass_type": "a mapping",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
    "float_type": "a finite number",
    "int_type": "an integer",
    "string_type": "a string",
    "tuple_type": "a list",
}
"""What a value must be, by pydantic's name for the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with a value.

    Attributes:
        place: Keys and numbers that lead to it, such as "data.train[0].copies"; "" for the whole.
        text: What is wrong, to follow the place, such as "is 'many'; it must be an integer".
        is_check: The text is a dataclass's own and names what it is about.
        owner: Of an unknown key: the dataclass that has no such field.
    """

    place: str
    text: str
    is_check: bool = False
    owner: type | None = None

    def __str__(self) -> str:
        return f"{self.place or 'the file'}{': ' if self.is_check else ' '}{self.text}"


class ConversionError(ConfigError):
    """A value that does not describe what it should.

    Attributes:
        problems: All that is wrong with it.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))


def convert(kind: type[T], value: object, *, is_finite: bool = True) -> T:
    """An instance of a dataclass from a parsed file.

    Fields may be str, int, float, bool, Literal of strings, another dataclass, `X | None`,
    `tuple[X, ...]` and `Mapping[str, X]`. One with a default may be left out.

    Args:
        kind: The dataclass.
        value: Of the types that JSON has, without half characters.
        is_finite: Refuse NaN and infinity, which dataclasses else see.

    Raises:
        ConversionError: Keys are missing or unknown, or values have wrong types or are refused by
            a dataclass with a `ConfigError`.
    """
    try:
        return cast("T", _made(kind, value, is_finite=is_finite))
    except (_UnsureError, ConfigError):
        return _judged(kind, value, is_finite=is_finite)


def _judged(kind: type[T], value: object, *, is_finite: bool) -> T:
    """The same by Pydantic, which finds every problem."""
    from pydantic import ValidationError  # noqa: PLC0415  # see above

    try:
        # Strict JSON is the mode in which lists are tuples, mappings are dataclasses, and nothing
        # else is taken for what it is not. The list around the value carries the settings.
        text = json.dumps([value])
        found = _adapter(cast("type", kind), is_finite=is_finite).validate_json(text)
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise ConversionError([_problem(kind, item) for item in details]) from error
    except RecursionError as error:
        raise ConversionError([_TOO_DEEP]) from error
    return cast("T", found[0])


def hint_at(kind: object, location: Location) -> object:
    """The type hint of a place below a dataclass, without `| None`; None where there is none."""
    hint = kind
    for part in location:
        if isinstance(hint, type) and is_dataclass(hint):
            hint = _hints(hint).get(str(part))
        else:
            origin, arguments = get_origin(hint), get_args(hint)
            is_item = origin is tuple and isinstance(part, int)
            hint = arguments[0] if is_item else arguments[1] if origin is Mapping else None
        if get_origin(hint) in {UnionType, Union}:
            hint = next(item for item in get_args(hint) if item is not NoneType)
    return hint


def place_of(location: Location) -> str:
    """A location as people write it: "data.train[0].copies"."""
    place = ""
    for part in location:
        if isinstance(part, int):
            place += f"[{part}]"
        else:
            place += f".{key_in_place(part)}" if place else key_in_place(part)
    return place


def key_in_place(key: str) -> str:
    """A key as part of a place: as it is, unless it is odd or long."""
    return key if key.isprintable() and len(key) <= _MAX_KEY_CHARACTERS else shown(key)


def is_default(item: Field[object], value: object) -> bool:
    """Whether a value is what a field of a dataclass has when it is left out."""
    if item.default_factory is not MISSING:
        return value == item.default_factory()
    return value == item.default


_TOO_DEEP = Problem(place="", text="is nested too deeply")


class _UnsureError(Exception):
    """A value that may be wrong."""


def _made(hint: object, value: object, *, is_finite: bool) -> object:
    """What a value describes, if it is just as its hint wants it.

    Raises:
        _UnsureError: It is not, or the hint is of a kind that `convert` does not name.
        ConfigError: A dataclass has refused it.
    """
    if isinstance(hint, type) and is_dataclass(hint):
        return _made_dataclass(hint, value, is_finite=is_finite)
    if hint in _PLAIN:
        return _made_plain(hint, value, is_finite=is_finite)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {UnionType, Union} and NoneType in arguments and len(arguments) == 2:
        [other] = (one for one in arguments if one is not NoneType)
        return None if value is None else _made(other, value, is_finite=is_finite)
    if origin is Literal and type(value) is str and value in arguments:
        return value
    return _made_items(origin, arguments, value, is_finite=is_finite)


def _made_items(
    origin: object, arguments: tuple[object, ...], value: object, *, is_finite: bool
) -> object:
    if origin is tuple and type(value) is list and arguments[1:] == (...,):
        return tuple(_made(arguments[0], one, is_finite=is_finite) for one in value)
    if origin is Mapping and type(value) is dict and arguments[0] is str and _has_names(value):
        return {name: _made(arguments[1], one, is_finite=is_finite) for name, one in value.items()}
    raise _UnsureError


def _made_dataclass(kind: type, value: object, *, is_finite: bool) -> object:
    if type(value) is not dict or not _has_names(value):
        raise _UnsureError
    hints, known = _hints(kind), fields(kind)
    needed = {
        item.name for item in known if item.default is MISSING and item.default_factory is MISSING
    }
    if not needed <= value.keys() <= {item.name for item in known if item.init}:
        raise _UnsureError
    return kind(
        **{name: _made(hints[name], one, is_finite=is_finite) for name, one in value.items()}
    )


def _made_plain(hint: object, value: object, *, is_finite: bool) -> object:
    """A text, a truth value or a number; a true is no number, and an integer may be one."""
    if type(value) is hint:
        if hint is float and is_finite and not math.isfinite(cast("float", value)):
            raise _UnsureError
        return value
    if hint is float and type(value) is int and abs(value) <= _MAX_EXACT:
        return float(value)
    raise _UnsureError


def _has_names(value: Mapping[object, object]) -> bool:
    return all(type(name) is str for name in value)


@cache
def _adapter(kind: type, *, is_finite: bool) -> "TypeAdapter[Any]":
    from pydantic import ConfigDict, TypeAdapter  # noqa: PLC0415  # see above

    settings = ConfigDict(strict=True, extra="forbid", allow_inf_nan=not is_finite)
    adapted = tuple[kind]  # type: ignore[valid-type]  # a class that is known when it runs
    return TypeAdapter(adapted, config=settings)


@cache
def _hints(kind: type) -> dict[str, object]:
    return get_type_hints(kind)


def _problem(kind: type, details: "ErrorDetails") -> Problem:
    """An error of pydantic's in our words."""
    location, name = details["loc"][1:], details["type"]
    place, value = place_of(location), details["input"]
    if name == "json_invalid":  # the text is our own: only its depth can be at fault
        return _TOO_DEEP
    if name == "missing":
        return Problem(place=place, text="is missing")
    if name == "unexpected_keyword_argument":
        owner = hint_at(kind, location[:-1])
        assert isinstance(owner, type)
        return Problem(place=place, text="is unknown", owner=owner)
    if name == "value_error":
        return Problem(place=place, text=str(details["ctx"]["error"]), is_check=True)
    if name == "literal_error":
        wanted = details["ctx"]["expected"]
    else:
        wanted = _WANTED.get(name, details["msg"])
    return Problem(place=place, text=f"is {shown(value)}; it must be {wanted}")
