"""The head of a model's README.md, as the hub has it: under which licence the weights are.

Owns the two fields `license` and `license_name`, how they are written and how they are read. Of the
rest of a head nothing is looked at, whatever is wrong with it.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from model.checkpoint.files.checksums import read_limited
from model.errors import CheckpointError, ConfigError
from model.exchange.bounded_yaml import parse_yaml
from model.exchange.spdx import OTHER, hub_word, stated_licence

CARD_FILE = "README.md"

_MAX_CARD_BYTES = 4 * 2**20
_MAX_FIELD_BYTES = 2**14
_FENCE = "---"
_FIELDS = ("license", "license_name")


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

    None where there is no such file, no head, or no licence in it that can be read.
    """
    try:
        data = read_limited(folder / CARD_FILE, _MAX_CARD_BYTES)
    except CheckpointError:
        return None
    text = "\n".join(_field_lines(data.decode("utf-8-sig", "replace").splitlines()))
    if len(text) > _MAX_FIELD_BYTES:
        return None
    try:
        fields = parse_yaml(text)
    except ConfigError:
        return None
    if not isinstance(fields, dict):
        return None
    words, name = fields.get("license"), fields.get("license_name")
    listed = words if isinstance(words, list) else [words]
    return stated_licence(
        (word for word in listed if isinstance(word, str) and word.strip()),
        name if isinstance(name, str) else None,
    )


def _field_lines(lines: list[str]) -> Iterator[str]:
    """The lines of both fields within the head, if there is one: their own, and what is below."""
    if not lines or lines[0].rstrip() != _FENCE:
        return
    ends = (number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE)
    is_wanted = False
    for line in lines[1 : next(ends, 1)]:
        if line[:1] not in {"", " ", "\t", "-", "#"}:  # a field begins
            is_wanted = line.partition(":")[0].rstrip().strip("\"'") in _FIELDS
        if is_wanted:
            yield line
