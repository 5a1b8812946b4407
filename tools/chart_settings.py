"""values.schema.json of the Helm chart: which settings of the server its values may have.

Owns the definition `settings` of that file, made of `service.settings` and the one variable that
a server reads beside them: a misspelt variable or an impossible number is refused by Helm, by its
name, before a pod exists. All else in the file is written by hand. A test compares the two.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from model.native.kernels import VARIABLE
from service.environment import ENVIRONMENT_PREFIX
from service.settings import NO_PIVOT, Settings

OWNED_BY_THE_CHART = frozenset(
    {
        "api_keys",
        "api_keys_dir",
        "api_keys_file",
        "checkpoint",
        "device",
        "host",
        "port",
        "redis_url",
    }
)
"""Settings that follow from other values."""

INSTRUCTION_SETS = (
    "avx2",
    "avx2-vnni",
    "avx512",
    "avx512-vnni",
    "avx512-amx",
    "neon",
    "neon-dotprod",
    "neon-i8mm",
)
"""What `model.native.kernels.VARIABLE` may name, on any machine; what is built is `setup.py`'s."""

_BYTES = r"^[0-9]+(\.[0-9]+)?[KMGT]?(i?B)?$"
_KEPT = ("type", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def main(argv: Sequence[str] | None = None) -> int:
    """Write the definition into the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("schema", type=Path, help="values.schema.json")
    path: Path = parser.parse_args(argv).schema
    schema = json.loads(path.read_text(encoding="utf-8"))
    schema["definitions"]["settings"] = definition()
    path.write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")
    return 0


def definition() -> dict[str, object]:
    """The schema of the value `settings`."""
    properties = Settings.model_json_schema()["properties"]
    settings = {
        f"{ENVIRONMENT_PREFIX}{name.upper()}": _property(name, described)
        for name, described in properties.items()
        if name not in OWNED_BY_THE_CHART
    }
    settings[VARIABLE] = {"type": "string", "enum": [*INSTRUCTION_SETS]}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: settings[name] for name in sorted(settings, key=str.lower)},
    }


def _property(name: str, described: Mapping[str, object]) -> dict[str, object]:
    """One setting, as an environment can say it.

    What may be `off` may be a boolean here, as YAML reads that word so without quotes: the chart
    then tells how it is written, which a schema cannot.
    """
    alternatives = described.get("anyOf")
    if isinstance(alternatives, list):
        kinds = [each for each in alternatives if each["type"] != "null"]
        if len(kinds) > 1:  # a word, or a number
            return {"anyOf": [_kept(each) for each in kinds]}
        [described] = kinds
    if described["type"] == "array":  # with commas between
        return {"type": "string"}
    if _takes_bytes(name):
        return _kept(described) | {"type": ["integer", "string"], "pattern": _BYTES}
    kept = _kept(described)
    words = kept.get("enum")
    if name == "pivot":
        return kept | {"type": ["string", "boolean"]}
    if isinstance(words, list) and NO_PIVOT in words:
        return kept | {"type": ["string", "boolean"], "enum": [*words, False, True]}
    return kept


def _kept(described: Mapping[str, object]) -> dict[str, object]:
    found = {key: described[key] for key in _KEPT if key in described}
    return found | ({"enum": [described["const"]]} if "const" in described else {})


def _takes_bytes(name: str) -> bool:
    """Whether a number of bytes may have a unit."""
    if Settings.model_fields[name].annotation is str:
        return False
    for value in ("1K", "1048576K"):
        try:
            found = getattr(Settings.model_validate({name: value}), name)
        except ValidationError:
            continue
        if isinstance(found, int):
            return True
    return False


if __name__ == "__main__":
    sys.exit(main())
