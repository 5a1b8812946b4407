"""A YAML file as a dataclass: keys, types and choices checked against the class's annotations.

Owns the conversion and its messages, which name the file, the line and the key, and what of a
dataclass was said. Does not own any class; the limits of values are their classes' own, in
`__post_init__`.
"""

import dataclasses
import types
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from model.errors import ConfigError
from model.train.yaml_lines import key_lines, line_of

T = TypeVar("T")


def read_yaml(path: Path, kind: type[T]) -> T:
    """Read a file that describes one `kind`, a dataclass of dataclasses and plain values.

    Raises:
        ConfigError: The file is missing or is not YAML, a key is unknown, missing or there twice,
            or a value has the wrong type or is out of its range; the message names the file, the
            line and the key.
    """
    try:
        text = path.read_text(encoding="utf-8")
        document = yaml.safe_load(text)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: not YAML: {error}") from error
    lines: dict[str, int] = {}
    try:
        lines = key_lines(text)
        converted = _convert(document, kind, "")
    except ConfigError as error:
        line = line_of(str(error), lines)
        where = str(path) if line is None else f"{path}:{line}"
        raise ConfigError(f"{where}: {error}") from error
    assert isinstance(converted, kind)
    return converted


def told(value: object, but: Set[str] = frozenset()) -> object:
    """What was said of a configuration: nested lists of its keys and values, in their order.

    Keys at their defaults are left out, so that a key that is added one day changes nothing of
    what was said before.

    Args:
        value: A dataclass, or what one holds.
        but: Keys to leave out besides, at any depth.
    """
    if isinstance(value, tuple):
        return tuple(told(item, but) for item in value)
    if not dataclasses.is_dataclass(value):
        return float(value) if type(value) is int else value  # 2 copies are 2.0
    return [
        (item.name, told(getattr(value, item.name), but))
        for item in dataclasses.fields(value)
        if item.name not in but and not _is_default(item, getattr(value, item.name))
    ]


def _is_default(item: dataclasses.Field[object], value: object) -> bool:
    if item.default_factory is not dataclasses.MISSING:
        return value == item.default_factory()
    return value == item.default


def _convert(value: object, kind: object, where: str) -> object:
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _convert_mapping(value, kind, where)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _convert_choice(value, arguments, where)
    if origin is tuple:
        return _convert_list(value, arguments[0], where)
    if origin is Mapping:
        return _convert_items(value, arguments, where)
    if origin in (types.UnionType, Union):
        (kind,) = (argument for argument in arguments if argument is not type(None))
        return None if value is None else _convert(value, kind, where)
    return _convert_scalar(value, kind, where)


def _convert_choice(value: object, choices: tuple[object, ...], where: str) -> object:
    if value not in choices:
        listed = ", ".join(map(str, choices))
        raise ConfigError(f"{where} is {value!r}; it must be one of {listed}")
    return value


def _convert_list(value: object, kind: object, where: str) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise ConfigError(f"{where} is {value!r}; it must be a list")
    return tuple(_convert(item, kind, f"{where}[{index}]") for index, item in enumerate(value))


def _convert_items(value: object, kinds: tuple[object, ...], where: str) -> dict[object, object]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where} is {value!r}; it must be a mapping")
    key_kind, item_kind = kinds
    return {
        _convert(key, key_kind, where): _convert(item, item_kind, f"{where}.{key}")
        for key, item in value.items()
    }


def _convert_mapping(value: object, kind: type, where: str) -> object:
    name = where or "the experiment"
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} is {value!r}; it must be a mapping")
    fields = {item.name: item for item in dataclasses.fields(kind)}
    prefix = f"{where}." if where else ""
    unknown = sorted(f"{prefix}{key}" for key in value if key not in fields)
    if unknown:
        known = ", ".join(sorted(fields))
        raise ConfigError(f"unknown key {', '.join(unknown)}; known here: {known}")
    missing = [
        f"{prefix}{key}"
        for key, item in fields.items()
        if key not in value
        and item.default is dataclasses.MISSING
        and item.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ConfigError(f"missing key {', '.join(missing)}")
    hints = get_type_hints(kind)
    return kind(
        **{key: _convert(item, hints[key], f"{prefix}{key}") for key, item in value.items()}
    )


def _convert_scalar(value: object, kind: object, where: str) -> object:
    if kind is float and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)  # YAML 1.1 reads 1e-3, without a dot, as a string
        except ValueError:
            pass
    elif isinstance(kind, type) and type(value) is kind:  # not isinstance: True is no number
        return value
    wanted = kind.__name__ if isinstance(kind, type) else str(kind)
    raise ConfigError(f"{where} is {value!r}; it must be of type {wanted}")
