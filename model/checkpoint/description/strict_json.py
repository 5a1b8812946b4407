"""Strict JSON of untrusted files, to plain values and back.

Owns what is refused of a text that is not quite JSON, or that could be read in two ways. It does
not own what the values are: `model.conversion` makes dataclasses of them.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import cast

from model.errors import ConfigError, shown

_MAX_DIGITS = 1_000
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
    """Indented UTF-8 JSON of a plain value, with a final newline."""
    return (json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


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
