"""A YAML file as a dataclass: every problem of its keys and values, each with file, line and key.

Owns the reading of the file, what YAML makes of values that other formats do not have, and the
messages. Does not own the conversion (`model.conversion`), lines (`model.train.config.yaml_lines`)
or any class; the limits of values are their classes' own, in `__post_init__`, and so are presets,
in `PRESETS`: values by name, which the key `preset` of a mapping begins with.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

import yaml

from model.conversion import ConversionError, Location, Problem, convert, hint_at, place_of
from model.errors import ConfigError, shown
from model.train.config.yaml_lines import (
    KeyPlaces,
    key_lines,
    line_at,
    line_of,
    placed,
    without_numbers,
)

T = TypeVar("T")

_MAX_BITS = 63  # of an integer: what tensors and generators of random numbers take
_MADE_BY_YAML = "which YAML made of it; it must be quoted to be a string"
_NO_STRING = re.compile(r"(is [-+.\w]+); it must be a string")
"""Said of a truth value, null or a number: of what has neither quotes nor brackets."""
_UNUSABLE: dict[str, object] = {}
"""Stands for a value with a problem, where nothing else is asked of it."""


def read_placed_yaml(path: Path, kind: type[T]) -> tuple[T, KeyPlaces]:
    """Read a file that describes one `kind`, a dataclass of dataclasses and plain values.

    Returns:
        What it describes, and where its keys stand.

    Raises:
        ConfigError: The file is missing or is not YAML, keys are unknown, missing or there twice,
            or values have the wrong type or are out of their range; the message has a line for
            each problem, with the file, the line and the key.
    """
    document, lines = _load(path)
    places = KeyPlaces(path=path, lines=lines)
    return _convert(document, kind, "", path, lines), places


def read_section(path: Path, name: str, kind: type[T]) -> T:
    """Read one top-level key of a file, a dataclass, whatever the others say.

    Raises:
        ConfigError: As `read_placed_yaml`; or the key is not there.
    """
    document, lines = _load(path)
    if not isinstance(document, Mapping) or name not in document:
        raise ConfigError(f"{path}: {name} is missing")
    return _convert(document[name], kind, name, path, lines)


class _Loader(yaml.SafeLoader):
    """Loader that says where a value stands that looks like a date or a number and is none."""

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


def _convert(
    document: object, kind: type[T], section: str, path: Path, lines: Mapping[str, int]
) -> T:
    problems: list[Problem] = []
    plain = _plain(document, kind, (), problems)
    try:
        converted = convert(kind, plain, is_finite=False)
    except ConversionError as error:
        named = {problem.place for problem in problems}
        problems += [problem for problem in error.problems if problem.place not in named]
    if not problems:
        return converted
    messages = [_message(problem, section, lines) for problem in problems]
    messages.sort(key=lambda item: item[0] or 0)
    raise ConfigError("\n".join(placed(path, line, message) for line, message in messages))


def _message(problem: Problem, section: str, lines: Mapping[str, int]) -> tuple[int | None, str]:
    """The line of a problem and its words, from the key at the top of the file on."""
    place = ".".join(filter(None, (section, problem.place)))
    if problem.is_check:
        plain, message = without_numbers(place), problem.text
        if plain != place and message.startswith(plain):
            message = place + message[len(plain) :]
        return line_of(message, lines) or line_at(place, lines), message
    text = _NO_STRING.fullmatch(problem.text)  # Norwegian is `no`, which is false in YAML 1.1
    message = f"{place or 'the file'} {f'{text[1]}, {_MADE_BY_YAML}' if text else problem.text}"
    if problem.owner is not None:
        known = [item.name for item in fields(problem.owner)]
        presets = ["preset"] if _presets(problem.owner) else []
        message += f"; known here: {', '.join(sorted([*known, *presets]))}"
    return line_at(place, lines), message


def _plain(value: object, kind: type, location: Location, problems: list[Problem]) -> object:
    """A value of YAML as JSON would have it, with what a preset stands for."""
    if isinstance(value, list):
        items = enumerate(value)
        return [_plain(item, kind, (*location, index), problems) for index, item in items]
    if isinstance(value, Mapping):
        return _plain_mapping(value, kind, location, problems)
    if isinstance(value, str):
        text = _whole_characters(value, location, problems)
        is_number = hint_at(kind, location) is float
        return _number(text) if is_number and isinstance(text, str) else text
    return _plain_scalar(value, location, problems)


def _plain_scalar(value: object, location: Location, problems: list[Problem]) -> object:
    if isinstance(value, float | bool | None):
        return value
    if not isinstance(value, int):  # a date, bytes, a set
        text = f"is {shown(value)}, {_MADE_BY_YAML}"
    elif value.bit_length() > _MAX_BITS:
        text = f"is a number of {value.bit_length()} bits; it must have at most {_MAX_BITS}"
    else:
        return value
    problems.append(Problem(place=place_of(location), text=text))
    return _UNUSABLE


def _plain_mapping(
    value: Mapping[object, object], kind: type, location: Location, problems: list[Problem]
) -> dict[str, object]:
    found: dict[str, object] = {}
    presets = _presets(hint_at(kind, location))
    for key, item in value.items():
        assert isinstance(key, str)  # of others, `key_lines` has refused the file
        name = _whole_characters(key, location, problems)
        if isinstance(name, str) and not (presets and name == "preset"):
            found[name] = _plain(item, kind, (*location, name), problems)
    chosen = value.get("preset")
    if not presets or "preset" not in value:
        return found
    if not isinstance(chosen, str) or chosen not in presets:
        text = f"is {shown(chosen)}; it must be one of {', '.join(presets)}"
        problems.append(Problem(place=place_of((*location, "preset")), text=text))
        return found
    return {**presets[chosen], **found}


def _presets(kind: object) -> Mapping[str, Mapping[str, object]]:
    presets: Mapping[str, Mapping[str, object]] = getattr(kind, "PRESETS", {})
    return presets


def _number(text: str) -> float | str:
    """YAML 1.1 reads 1e-3, without a dot, as a string."""
    try:
        return float(text)
    except ValueError:
        return text


def _whole_characters(text: str, location: Location, problems: list[Problem]) -> object:
    r"""Text whose surrogate pairs are the characters they stand for.

    YAML reads "\ud83d\ude00", which JSON writes for one character, as two halves of it. Half a
    character alone is a problem: no file can hold it.
    """
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        half = int.from_bytes(error.object[error.start : error.start + 2], "little")
        problem = f"has \\u{half:04x}, half of a surrogate pair; it must be whole characters"
        problems.append(Problem(place=place_of(location), text=problem))
        return _UNUSABLE
