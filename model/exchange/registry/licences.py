"""Licences of weights that want to be accepted, and those that were.

Owns which licences want a word, and the file that remembers it. What a licence says is its own, how
it is spelt `model.exchange.spdx`'.
"""

import re
from pathlib import Path

from model.checkpoint.description.strict_json import format_json, parse_json
from model.errors import ConfigError
from model.exchange.registry.cache import write_whole
from model.system.paths import is_file

_NON_COMMERCIAL = re.compile(
    r"(^|[^a-z])(nc|non-?commercial|research|academic)([^a-z]|$)", re.IGNORECASE
)


def is_restricted(licence: str | None) -> bool:
    """Whether a licence forbids common uses, by its name: CC-BY-NC-4.0, research only."""
    return licence is not None and _NON_COMMERCIAL.search(licence) is not None


def accepted_licences(path: Path) -> frozenset[str]:
    """Licences that were accepted, in lower case; a file that is damaged has none."""
    if not is_file(path):
        return frozenset()
    try:
        value = parse_json(path.read_bytes())
    except ConfigError:
        return frozenset()
    items = value if isinstance(value, list) else []
    return frozenset(item for item in items if isinstance(item, str))


def accept(path: Path, licence: str) -> None:
    """Remember a licence."""
    names = sorted(accepted_licences(path) | {licence.lower()})
    write_whole(path, format_json(names))


def check_accepted(licence: str | None, path: Path, *, accepting: str | None) -> None:
    """Refuse a restricted licence that nobody has accepted; remember one that is accepted now.

    Args:
        licence: Of the weights.
        path: Of the file that remembers.
        accepting: The licence that a person accepts; must be the very one.

    Raises:
        ConfigError: It is not accepted, or another one is.
    """
    if accepting is not None and (licence is None or accepting.lower() != licence.lower()):
        raise ConfigError(f"the licence is {licence or 'not stated'}, not {accepting}")
    if licence is None or not is_restricted(licence):
        return
    if licence.lower() in accepted_licences(path):
        return
    if accepting is None:
        raise ConfigError(
            f"the weights are under {licence}, which restricts their use;"
            f" if that is all right: --accept-licence {licence}"
        )
    accept(path, licence)
