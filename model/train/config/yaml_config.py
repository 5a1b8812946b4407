"""A YAML file as a dataclass: keys, types and choices checked against the class's annotations.

Owns the conversion and its messages, which name the file, the line and the key, what of a
dataclass was said, and where two of them differ. Does not own any class; the limits of values are
their classes' own, in `__post_init__`, and so are presets, in `PRESETS`: values by name, which the
key `preset` of a mapping begins with.
"""

import dataclasses
import types
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from model.errors import ConfigError
from model.train.config.yaml_lines import KeyPlaces, generic, key_lines, line_of, placed

T = TypeVar("T")

_MAX_BITS = 63  # of an integer: what tensors and generators of random numbers take


def read_placed_yaml(path: Path, kind: type[T]) -> tuple[T, KeyPlaces]:
    """Read a file that describes one `kind`, a dataclass of dataclasses and plain values.

    Returns:
        What it describes, and where its keys stand.

    Raises:
        ConfigError: The file is missing or is not YAML, a key is unknown, missing or there twice,
            or a value has the wrong type or is out of its range; the message names the file, the
            line and the key.
    """
    document, lines = _load(path)
    try:
        converted = _convert(document, kind, "")
    except ConfigError as error:
        raise ConfigError(placed(path, line_of(str(error), lines), str(error))) from error
    assert isinstance(converted, kind)
    return converted, KeyPlaces(path=path, lines=lines)


def read_section(path: Path, name: str, kind: type[T]) -> T:
    """Read one top-level key of a file, a dataclass, whatever the others say.

    Raises:
        ConfigError: As `read_placed_yaml`; or the key is not there.
    """
    document, lines = _load(path)
    if not isinstance(document, Mapping) or name not in document:
        raise ConfigError(f"{path}: missing key {name}")
    try:
        converted = _convert(document[name], kind, name)
    except ConfigError as error:
        raise ConfigError(placed(path, line_of(str(error), lines), str(error))) from error
    assert isinstance(converted, kind)
    return converted


class _Loader(yaml.SafeLoader):
    """Says where a value stands that looks like a date or a number and is none."""

    def construct_object(  # type: ignore[no-untyped-def]  # PyYAML has no types here
        self,
        node: yaml.Node,
        deep: bool = False,  # noqa: FBT001, FBT002  # its signature
    ):
        try:
            return super().construct_object(node, deep)
        except ValueError as error:
            problem = str(error).partition(";")[0]
            raise yaml.constructor.ConstructorError(
                problem=problem, problem_mark=node.start_mark
            ) from error


def _load(path: Path) -> tuple[object, dict[str, int]]:
    """A file's document and the lines of its keys."""
    data = b""
    try:
        data = path.read_bytes()
        text = data.decode("utf-8")
        document = yaml.load(text, Loader=_Loader)  # noqa: S506  # a SafeLoader
        return document, key_lines(text)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(placed(path, line, f"not YAML: {error}")) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problem = f"not YAML: U+{error.character:04X} is not allowed"
        raise ConfigError(placed(path, line, problem)) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = f"not YAML: {error.problem or error.context}"
        raise ConfigError(placed(path, mark.line + 1 if mark else None, problem)) from error
    except (yaml.YAMLError, RecursionError) as error:  # endless brackets
        raise ConfigError(placed(path, None, f"not YAML: {error}")) from error
    except ConfigError as error:
        raise ConfigError(placed(path, None, str(error))) from error


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


def differences(
    wanted: object, found: object, where: str, but: Set[str] = frozenset()
) -> Iterator[tuple[str, str]]:
    """Where two values of one annotation differ: keys, and the two values in words.

    Args:
        wanted: A dataclass, or what one holds.
        found: Such a one, told to be "the run's".
        where: Their key.
        but: Keys to leave out, at any depth.

    Yields:
        Such as ("network.d_ff", "is 32, the run's is 16").
    """
    if dataclasses.is_dataclass(wanted) and type(wanted) is type(found):
        for item in dataclasses.fields(wanted):
            if item.name not in but:
                values = getattr(wanted, item.name), getattr(found, item.name)
                yield from differences(*values, f"{where}.{item.name}", but)
    elif dataclasses.is_dataclass(wanted) or dataclasses.is_dataclass(found):
        words = ["not set" if value is None else "set" for value in (wanted, found)]
        yield where, f"is {words[0]}, the run's is {words[1]}"
    elif _holds_dataclasses(wanted) or _holds_dataclasses(found):
        assert isinstance(wanted, tuple)
        assert isinstance(found, tuple)
        for number, values in enumerate(zip(wanted, found, strict=False)):
            yield from differences(*values, f"{where}[{number}]", but)
        if len(wanted) != len(found):
            yield where, f"has {len(wanted)} entries, the run's has {len(found)}"
    elif wanted != found:
        shown = [list(value) if isinstance(value, tuple) else value for value in (wanted, found)]
        yield where, f"is {shown[0]!r}, the run's is {shown[1]!r}"


def _holds_dataclasses(value: object) -> bool:
    return isinstance(value, tuple) and any(map(dataclasses.is_dataclass, value))


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
    found = {}
    for key, item in value.items():
        name = _convert(key, key_kind, where)
        found[name] = _convert(item, item_kind, f"{where}.{name}")
    return found


def _convert_mapping(value: object, kind: type, where: str) -> object:
    name = where or "the experiment"
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} is {value!r}; it must be a mapping")
    prefix = f"{where}." if where else ""
    presets: Mapping[str, Mapping[str, object]] = getattr(kind, "PRESETS", {})
    if presets and "preset" in value:
        chosen = _convert_choice(value["preset"], tuple(presets), f"{prefix}preset")
        said = {key: item for key, item in value.items() if key != "preset"}
        value = {**presets[str(chosen)], **said}
    fields = {item.name: item for item in dataclasses.fields(kind)}
    unknown = sorted(f"{prefix}{key}" for key in value if key not in fields)
    if unknown:
        known = ", ".join(sorted([*fields, *(["preset"] if presets else [])]))
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
    values = {key: _convert(item, hints[key], f"{prefix}{key}") for key, item in value.items()}
    try:
        return kind(**values)
    except ConfigError as error:
        plain = generic(where)
        if plain == where or not str(error).startswith(plain):
            raise
        raise ConfigError(f"{where}{str(error)[len(plain) :]}") from error


def _convert_scalar(value: object, kind: object, where: str) -> object:
    if type(value) is int and value.bit_length() > _MAX_BITS:
        raise ConfigError(f"{where} is a number of {value.bit_length()} bits; it must be smaller")
    if kind is float and isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)  # YAML 1.1 reads 1e-3, without a dot, as a string
        except ValueError:
            pass
    elif isinstance(kind, type) and type(value) is kind:  # not isinstance: True is no number
        return _joined(value, where) if isinstance(value, str) else value
    wanted = kind.__name__ if isinstance(kind, type) else str(kind)
    raise ConfigError(f"{where} is {value!r}; it must be of type {wanted}")


def _joined(text: str, where: str) -> str:
    r"""Text whose surrogate pairs are the characters they stand for.

    YAML reads "\ud83d\ude00", which JSON writes for one character, as two halves of it.

    Raises:
        ConfigError: A half stands alone: no file can hold it.
    """
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        half = int.from_bytes(error.object[error.start : error.start + 2], "little")
        raise ConfigError(
            f"{where} has \\u{half:04x}, half of a surrogate pair; it must be whole characters"
        ) from error
