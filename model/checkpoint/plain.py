"""JSON text to frozen dataclasses and back, with every problem found in one pass.

Owns the reading of untrusted JSON by the type hints of a dataclass: every field must be
there, nothing else may be, and all that is wrong is collected as `place: problem` lines. It
does not own what the values mean together; that is `model.checkpoint.manifest`.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from types import NoneType, UnionType
from typing import Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from model.errors import ConfigError, shown

T = TypeVar("T")

_UNREADABLE = object()
_MAX_DIGITS = 1_000
_MAX_KEY_CHARACTERS = 200
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""How JSON writes half a character; two of them that belong together are one."""


def parse_json(data: bytes) -> object:
    """Parse strict JSON: UTF-8, no half characters, no key twice in an object, no NaN or infinity.

    Raises:
        ConfigError: The bytes are not that; the message says where.
    """
    try:
        text = data.decode("utf-8")
        value = cast(
            "object",
            json.loads(
                text,
                object_pairs_hook=_unique_keys,
                parse_constant=_no_constant,
                parse_int=_integer,
            ),
        )
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 at byte {error.start}") from error
    except UnicodeEncodeError as error:
        raise ConfigError("not readable JSON: a string has half a character in it") from error
    except RecursionError as error:
        raise ConfigError("not readable JSON: nested too deeply") from error
    except ValueError as error:
        raise ConfigError(f"not readable JSON: {error}") from error
    return value


def format_json(value: object) -> bytes:
    """Write a dataclass or a plain value as indented UTF-8 JSON with a final newline."""
    plain = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    return (json.dumps(plain, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


def read_dataclass(kind: type[T], value: object, problems: list[str]) -> T | None:
    """Build `kind` from a parsed JSON object, or append what is wrong to `problems`.

    Fields may be str, int, float, bool, Literal, another dataclass, `X | None`,
    `tuple[X, ...]` and `Mapping[str, X]`. A default does not make a field optional: a file
    states everything, so that a later default cannot change what it means.

    Returns:
        The instance, or None when anything in it was wrong.
    """
    result = _read(kind, value, "", problems)
    return None if result is _UNREADABLE else cast("T", result)


def _unique_keys(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = sorted(shown(key) for key, count in counts.items() if count > 1)
        raise ValueError(f"key {', '.join(twice)} stands twice in one object")
    return result


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"an integer has {len(digits)} digits; at most {_MAX_DIGITS} are read")
    return int(digits)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _read(hint: object, value: object, place: str, problems: list[str]) -> object:
    """Read one value by its type hint; `_UNREADABLE` when a problem was appended."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {UnionType, Union}:  # `X | None`; with a Literal it is a typing.Union
        if value is None and NoneType in arguments:
            return None
        (present,) = (argument for argument in arguments if argument is not NoneType)
        return _read(present, value, place, problems)
    if origin is tuple:
        return _read_items(arguments[0], value, place, problems)
    if origin is Mapping:
        return _read_mapping(arguments[1], value, place, problems)
    if isinstance(hint, type) and is_dataclass(hint):
        return _read_fields(hint, value, place, problems)
    return _read_scalar(hint, value, place, problems)


def _read_scalar(hint: object, value: object, place: str, problems: list[str]) -> object:
    if get_origin(hint) is Literal:
        choices = get_args(hint)
        # `True == 1`, so equality alone would take a bool for a version number.
        if any(value == choice and type(value) is type(choice) for choice in choices):
            return value
        wanted = " or ".join(repr(choice) for choice in choices)
    elif hint is float:
        number = _finite(value)
        if number is not None:
            return number
        wanted = "a finite number"
    else:
        if type(value) is hint:
            return value
        wanted = {str: "a string", int: "an integer", bool: "true or false"}[cast("type", hint)]
    problems.append(f"{place or 'the file'} is {shown(value)}; it must be {wanted}")
    return _UNREADABLE


def _key(key: str) -> str:
    """A key as part of a place: as it is, unless it is odd or long."""
    return key if key.isprintable() and len(key) <= _MAX_KEY_CHARACTERS else shown(key)


def _finite(value: object) -> float | None:
    if type(value) not in {int, float}:
        return None
    try:
        number = float(cast("float", value))
    except OverflowError:  # an integer of hundreds of digits
        return None
    return number if math.isfinite(number) else None


def _read_items(hint: object, value: object, place: str, problems: list[str]) -> object:
    if not isinstance(value, list):
        problems.append(f"{place} is {shown(value)}; it must be a list")
        return _UNREADABLE
    items = tuple(_read(hint, item, f"{place}[{i}]", problems) for i, item in enumerate(value))
    return _UNREADABLE if any(item is _UNREADABLE for item in items) else items


def _read_mapping(hint: object, value: object, place: str, problems: list[str]) -> object:
    if not isinstance(value, dict):
        problems.append(f"{place} is {shown(value)}; it must be an object")
        return _UNREADABLE
    items = {
        key: _read(hint, item, f"{place}.{_key(key)}", problems) for key, item in value.items()
    }
    return _UNREADABLE if any(item is _UNREADABLE for item in items.values()) else items


def _read_fields(kind: type, value: object, place: str, problems: list[str]) -> object:
    if not isinstance(value, dict):
        problems.append(f"{place or 'the file'} is {shown(value)}; it must be an object")
        return _UNREADABLE
    prefix = f"{place}." if place else ""
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    problems.extend(f"{prefix}{name} is missing" for name in names if name not in value)
    problems.extend(f"{prefix}{_key(key)} is unknown" for key in value if key not in hints)
    found = {
        name: _read(hints[name], value[name], f"{prefix}{name}", problems)
        for name in names
        if name in value
    }
    if len(found) < len(names) or any(item is _UNREADABLE for item in found.values()):
        return _UNREADABLE
    try:
        return cast("Callable[..., object]", kind)(**found)
    except ConfigError as error:
        problems.append(f"{place or 'the file'}: {error}")
        return _UNREADABLE
