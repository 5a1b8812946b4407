"""The head of a model's README.md, as the hub has it: under which licence the weights are.

Owns the two fields `license` and `license_name`, how they are written and how they are read. A head
is YAML; of one that is not, or not as a whole, each field is read alone, and what cannot be read of
it is taken as it stands: a licence that is there is never left out.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import yaml

from model.checkpoint.files.checksums import read_limited
from model.errors import CheckpointError, ConfigError
from model.exchange.bounded_yaml import compose_yaml
from model.exchange.spdx import OTHER, hub_word, stated_licence

CARD_FILE = "README.md"

_MAX_CARD_BYTES = 4 * 2**20
_MAX_PARSED = 2**14
"""Characters; YAML takes its time, and a longer head is read line by line."""
_MAX_PARSED_FIELDS = 16
_FENCE = "---"
_FIELDS = ("license", "license_name")
_NOTHING = "tag:yaml.org,2002:null"
_WRAPPING = " \t\"'[]{},"

Fields = dict[str, list[str]]
"""What is stated, by the field; a field without any is not stated."""


def format_head(licence: str) -> str:
    """The lines that a card begins with, as the hub takes them.

    Args:
        licence: Of the weights; one that the hub has no word for is named in full.
    """
    word = hub_word(licence)
    lines = [f"license: {word or OTHER}"]
    lines += (
        [] if word else [f"license_name: {json.dumps(licence, ensure_ascii=False)}"]
    )  # YAML, too
    return "\n".join([_FENCE, *lines, _FENCE, ""])


def card_licence(folder: Path) -> str | None:
    """The licence that the head of README.md says, as SPDX spells it where that is known.

    It has no control characters and is not longer than a name. None where there is no such file, no
    head, or no licence in it.
    """
    try:
        data = read_limited(folder / CARD_FILE, _MAX_CARD_BYTES)
    except CheckpointError:
        return None
    head = _head(data.decode("utf-8-sig", "replace").splitlines())
    found = _by_yaml("\n".join(head))
    fields = _by_lines(head) if found is None else found
    return stated_licence(*(fields.get(name, []) for name in _FIELDS))


def _head(lines: Sequence[str]) -> Sequence[str]:
    """The lines between both fences, before which only blank ones may be; none without a head."""
    begin = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if not lines or lines[begin].rstrip() != _FENCE:
        return ()
    inside = lines[begin + 1 :]
    ends = (number for number, line in enumerate(inside) if line.rstrip() == _FENCE)
    return inside[: next(ends, 0)]


def _by_yaml(text: str) -> Fields | None:
    """The fields of a mapping; None where it is none, or a field something else than words."""
    if len(text) > _MAX_PARSED:
        return None
    try:
        node = compose_yaml(text)
    except ConfigError:
        return None
    if not isinstance(node, yaml.MappingNode):
        return None
    fields: Fields = {}
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else None
        if name not in _FIELDS:
            continue
        items = value.value if isinstance(value, yaml.SequenceNode) else [value]
        if not all(isinstance(item, yaml.ScalarNode) for item in items):
            return None
        words = fields.setdefault(name, [])
        words += [item.value for item in items if item.tag != _NOTHING]
    return fields


def _by_lines(lines: Sequence[str]) -> Fields:
    """The fields of a head that is no YAML: each alone, or else its words as they stand."""
    fields: Fields = {}
    for number, (name, field) in enumerate(_field_lines(lines)):
        found = _by_yaml("\n".join(field)) if number < _MAX_PARSED_FIELDS else None
        if found is None:
            _, _, first = field[0].partition(":")
            words = [line.strip().removeprefix("- ") for line in (first, *field[1:])]
            found = {name: [" ".join(words).strip(_WRAPPING)]}
        fields.setdefault(name, []).extend(found.get(name, []))
    return fields


def _field_lines(lines: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The lines of both fields: their own, and what is below."""
    margin = next((len(line) - len(line.lstrip()) for line in lines if line.strip()), 0)
    found: list[tuple[str, list[str]]] = []
    is_wanted = False
    for line in lines:
        inner = line if line[:margin].strip() else line[margin:]
        if inner[:1] not in {"", " ", "\t", "-", "#"}:  # a field begins
            name = inner.partition(":")[0].rstrip().strip("\"'")
            is_wanted = name in _FIELDS
            if is_wanted:
                found.append((name, []))
        if is_wanted:
            found[-1][1].append(inner)
    return found
