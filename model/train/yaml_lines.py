"""Where the keys of a YAML file stand, so that an error about one can name its line.

Owns the search for lines and the refusal of a key that is written twice, which YAML forbids and
readers of YAML let pass. Does not own what keys mean.
"""

import re
from collections.abc import Iterator, Mapping

import yaml

from model.errors import ConfigError

_SUBJECT = re.compile(
    r"(?:unknown key |missing key )?([\w-]+(?:\[\d+\])*(?:\.[\w-]+(?:\[\d+\])*)*)"
)
_LIST_PARTS = re.compile(r"\[\d+\]|\.pairs\b")


def key_lines(text: str) -> dict[str, int]:
    """The line, from 1, of every key and list item: `data.train[0].name`.

    Args:
        text: A YAML document that can be read.

    Raises:
        ConfigError: A key is written twice.
    """
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    found: dict[str, int] = {}
    for path, line in _walk(node, ""):
        if path in found:
            raise ConfigError(f"{path} is written twice, on lines {found[path]} and {line}")
        found[path] = line
    return found


def line_of(message: str, lines: Mapping[str, int]) -> int | None:
    """The line of the key that an error's message begins with, or of what should hold it.

    Args:
        message: Such as "data.folder is 3; …" or "unknown key data.fodler; …".
        lines: From `key_lines`.
    """
    match = _SUBJECT.match(message)
    path = match[1] if match else ""
    while path:
        # Checks of a list's item do not know its number: they say data.train.copies.
        plain = [line for key, line in lines.items() if _LIST_PARTS.sub("", key) == path]
        if path in lines:
            return lines[path]
        if len(set(plain)) == 1:
            return plain[0]
        path = path.rpartition(".")[0]
    return None


def _walk(node: yaml.Node | None, path: str) -> Iterator[tuple[str, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = f"{path}.{key.value}" if path else str(key.value)
            yield below, key.start_mark.line + 1
            yield from _walk(value, below)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            below = f"{path}[{index}]"
            yield below, value.start_mark.line + 1
            yield from _walk(value, below)
