"""Lines of the keys of a YAML file, so that an error about a key can name its line.

Owns the search for lines, the errors that name them once the file is read, and the refusal of what
YAML forbids, or cannot mean here, and readers of YAML let pass: a key that is written twice, a
value that contains itself. Does not own what keys mean.
"""

import re
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from model.errors import ConfigError, DataError, InputError, TrainingError, UnwritableError

_SUBJECT = re.compile(r"[\w-]+(?:\[\d+\])*(?:\.[\w-]+(?:\[\d+\])*)*")
_MAX_KEYS = 100_000
_NO_TEXT = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "timestamp")}
_LIST_PARTS = re.compile(r"\[\d+\]|\.pairs\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPlaces:
    """Lines of the keys of an experiment, for errors that come up when it is run.

    Attributes:
        path: Its file; None when it was not read from one, and errors then name the key alone.
        lines: From `key_lines`.
    """

    path: Path | None = None
    lines: Mapping[str, int] = field(default_factory=dict)

    @contextmanager
    def blame(self, key: str, *exact: str) -> Iterator[None]:
        """Context whose errors are raised again with a key, its file and its line.

        Args:
            key: What they are about, such as "data.train[1]".
            exact: Keys below it, one of which is named in its place by a message that names it.

        Raises:
            ConfigError: The block did, or raised an `InputError`.
            DataError: The block did.
            TrainingError: The block did; one about a file stays as it is.
        """
        try:
            yield
        except InputError as error:
            raise ConfigError(self.message(str(error), key, *exact)) from error
        except ConfigError as error:
            raise ConfigError(self.message(str(error), key, *exact)) from error
        except DataError as error:
            raise DataError(self.message(str(error), key, *exact)) from error
        except UnwritableError:
            raise
        except TrainingError as error:
            raise TrainingError(self.message(str(error), key, *exact)) from error

    def message(self, problem: str, key: str, *exact: str) -> str:
        """A problem with the key it is about, the file and the line."""
        named = next((name for name in exact if name in problem), key)
        message = problem if named in problem else f"{named}: {problem}"
        return (
            message if self.path is None else placed(self.path, line_of(named, self.lines), message)
        )


def placed(path: Path, line: int | None, problem: str) -> str:
    """A problem as one line of text with its place before it."""
    where = path if line is None else f"{path}:{line}"
    return f"{where}: {' '.join(problem.split())}"


def without_numbers(place: str) -> str:
    """A place as the checks of list items name it, which do not know their number.

    "data.pairs[1].train[0]" is "data.train".
    """
    return _LIST_PARTS.sub("", place)


def key_lines(text: str) -> dict[str, int]:
    """The line, from 1, of every key and list item: `data.train[0].name`.

    Args:
        text: A YAML document that can be read.

    Raises:
        ConfigError: A key is written twice, a value contains itself, or there are too many.
    """
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    found: dict[str, int] = {}
    for path, line in _walk(node, "", frozenset()):
        if len(found) == _MAX_KEYS:  # aliases of aliases can be any number
            raise ConfigError(f"there are more than {_MAX_KEYS} keys and list items: line {line}")
        if path in found:
            raise ConfigError(f"{path} is written twice, on lines {found[path]} and {line}")
        found[path] = line
    return found


def line_of(message: str, lines: Mapping[str, int]) -> int | None:
    """The line of the key that an error's message begins with, or of what should hold it.

    Args:
        message: Such as "data.folder is 3; …".
        lines: From `key_lines`.
    """
    match = _SUBJECT.match(message)
    return line_at(match[0], lines) if match else None


def line_at(place: str, lines: Mapping[str, int]) -> int | None:
    """The line of a key such as "data.train[0].name", or of the nearest that should hold it."""
    while place:
        if place in lines:
            return lines[place]
        place = place[: max(place.rfind("."), place.rfind("["), 0)]
    return None


def _walk(node: yaml.Node | None, path: str, above: Set[yaml.Node]) -> Iterator[tuple[str, int]]:
    if node is None:
        return
    if node in above:
        raise ConfigError(f"{path} contains itself: line {node.start_mark.line + 1}")
    above = above | {node}
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.tag in _NO_TEXT:
                where = f"{path}: " if path else ""
                line = key.start_mark.line + 1
                raise ConfigError(f"{where}the key {key.value} is no text: line {line}; quote it")
            below = f"{path}.{key.value}" if path else str(key.value)
            yield below, key.start_mark.line + 1
            yield from _walk(value, below, above)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            below = f"{path}[{index}]"
            yield below, value.start_mark.line + 1
            yield from _walk(value, below, above)
