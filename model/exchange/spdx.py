"""Words for licences, as registries and model cards write them, in the spelling of SPDX.

Owns the one table of spellings, and what a card's several words for its licence mean together. What
a licence asks of anybody is `model.exchange.registry.licences`'.
"""

import re
from collections.abc import Iterable
from types import MappingProxyType

from model.checkpoint.description.names import plain_name

OTHER = "other"
"""What a card says whose licence the hub has no word for; `license_name` then names it."""
_SPELLINGS = MappingProxyType(
    {
        "afl-3.0": "AFL-3.0",
        "agpl-3.0": "AGPL-3.0",
        "apache-2.0": "Apache-2.0",
        "bsd-2-clause": "BSD-2-Clause",
        "bsd-3-clause": "BSD-3-Clause",
        "gpl-3.0": "GPL-3.0",
        "lgpl-3.0": "LGPL-3.0",
        "mit": "MIT",
        "mpl-2.0": "MPL-2.0",
    }
)
"""The hub writes all of them in small letters."""
_CAPITALS = ("cc-by", "cc0")


def spdx(licence: str) -> str:
    """A registry's word for a licence as SPDX spells it, where that is known; else the word."""
    word = licence.strip().lower()
    return word.upper() if word.startswith(_CAPITALS) else _SPELLINGS.get(word, licence.strip())


def hub_word(licence: str) -> str | None:
    """The hub's word for a licence, which `spdx` makes the licence of again; None: it has none."""
    word = licence.lower()
    is_one = re.fullmatch(r"[a-z0-9.-]+", word) is not None
    is_known = word in _SPELLINGS or (is_one and word.startswith(_CAPITALS))
    return word if is_known and spdx(word) == licence else None


def stated_licence(words: Iterable[str], names: Iterable[str]) -> str | None:
    """The licence of a card, or None where it says none.

    Args:
        words: Of its field `license`; what has nothing to be read in it is not stated.
        names: Of its field `license_name`, which count where a word is "other".
    """
    named = ", ".join(filter(None, map(plain_name, names)))
    plain = filter(None, map(plain_name, words))
    stated = ((named or word) if word.lower() == OTHER else spdx(word) for word in plain)
    return plain_name(", ".join(dict.fromkeys(stated))) or None
