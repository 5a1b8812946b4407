"""Importer of Firefox Translations' models, which are also Bergamot's: small students of Marian.

Owns the names of their files and what metadata.json says. The network is `model.py`'s.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from model.checkpoint.description.strict_json import parse_json
from model.config import LengthLimits
from model.errors import ConfigError, ForeignModelError, shown
from model.exchange.imports.imported import ImportedModel, ImportOptions
from model.exchange.imports.languages import split_pair
from model.exchange.imports.marian.files import MAX_OPTIONS_BYTES, read_small, refused
from model.exchange.imports.marian.importer import folder_files, side_of
from model.exchange.imports.marian.model import (
    MarianFacts,
    MarianSources,
    build_model,
    is_marian_file,
)
from model.exchange.imports.problems import attempted
from model.text.languages.tags import LanguagePair

LICENCE = "MPL-2.0"
LIMITS = LengthLimits(max_source_length=128, max_target_length=256)
"""Of Firefox: longer sentences are cut, and a target has at most twice the tokens of its source."""

_METADATA = "metadata.json"
_SHORTLIST_NOTE = (
    "Its lexical shortlist ({}) came along: sentences choose from it where that is asked for, and"
    " elsewhere from every target token, as in training."
)


@dataclass(frozen=True, slots=True)
class FirefoxImporter:
    """A folder with `model.<pair>.intgemm….bin`, its vocabularies, perhaps metadata.json."""

    name: str = "Firefox Translations"

    def recognises(self, source: Path) -> bool:
        """Whether a folder has a model and a vocabulary under Firefox's names."""
        try:
            models, vocabularies = _models(source), _vocabularies(source)
        except (OSError, ValueError, ForeignModelError):
            return False
        return bool(models and vocabularies) and any(map(is_marian_file, models))

    def read(self, source: Path, options: ImportOptions) -> ImportedModel:
        """Headers, options, vocabularies, metadata.

        Raises:
            ForeignModelError: With everything that is in the way.
        """
        models = _models(source)
        if len(models) != 1:
            names = ", ".join(path.name for path in models) or "none"
            raise refused(source, f"needs one model; it has {names}")
        pair_name = models[0].name.split(".")[1]
        problems: list[str] = []
        metadata = attempted(problems, lambda: _metadata(source)) or {}
        shortlist = attempted(problems, lambda: _shortlist(source))
        architecture = metadata.get("architecture")
        kind = f", architecture {architecture}" if isinstance(architecture, str) else ""
        return build_model(
            source,
            MarianSources(
                model=models[0],
                vocabularies=_sides(source),
                shortlist=shortlist,
                problems=tuple(problems),
            ),
            MarianFacts(
                format="Firefox Translations",
                name=f"firefox-{pair_name}",
                description=f"Firefox Translations {pair_name}{kind}",
                pairs=_pairs(pair_name, options),
                licence=LICENCE,
                limits=LIMITS,
                notes=(*_score_notes(metadata), *_shortlist_notes(shortlist)),
            ),
        )


FIREFOX = FirefoxImporter()


def _named(source: Path, *prefixes: str) -> list[Path]:
    if not source.is_dir():
        return []
    return [path for path in folder_files(source) if path.name.startswith(prefixes)]


def _models(source: Path) -> list[Path]:
    """Files named as Firefox names models: the pair stands between two dots."""
    return [
        path
        for path in _named(source, "model.")
        if ".intgemm" in path.name and split_pair(path.name.split(".")[1]) is not None
    ]


def _vocabularies(source: Path) -> list[Path]:
    return _named(source, "vocab.", "srcvocab.", "trgvocab.")


def _sides(source: Path) -> tuple[Path, Path]:
    """The vocabularies of source and target.

    Raises:
        ForeignModelError: There is neither one, nor one a side.
    """
    found = _vocabularies(source)
    if len(found) == 1 and found[0].name.startswith("vocab."):
        return found[0], found[0]
    sources, targets = side_of(found, "srcvocab."), side_of(found, "trgvocab.")
    if len(sources) == len(targets) == 1 and len(found) == 2:
        return sources[0], targets[0]
    names = ", ".join(path.name for path in found) or "none"
    raise refused(source, f"needs vocab.*, or srcvocab.* and trgvocab.*; it has {names}")


def _pairs(name: str, options: ImportOptions) -> tuple[LanguagePair, ...]:
    found = options.pairs or [pair for pair in [split_pair(name)] if pair is not None]
    return tuple(LanguagePair(source=source, target=target) for source, target in found)


def _metadata(source: Path) -> Mapping[str, object]:
    """metadata.json, empty if there is none.

    Raises:
        ForeignModelError: It is damaged.
    """
    path = source / _METADATA
    if not path.is_file():
        return {}
    try:
        value = parse_json(read_small(path, MAX_OPTIONS_BYTES))
    except ConfigError as error:
        raise refused(path, str(error)) from error
    if not isinstance(value, dict):
        raise refused(path, "is not a JSON object")
    return value


def _score_notes(metadata: Mapping[str, object]) -> list[str]:
    """What metadata.json says of quality: numbers under the names of FLORES' metrics."""
    flores = metadata.get("flores")
    if not isinstance(flores, dict):
        return []
    scores = [
        f"{shown(name).strip(chr(39))} {value:g}"
        for name, value in flores.items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    ]
    return [f"Published scores on FLORES: {', '.join(scores)}."] if scores else []


def _shortlist(source: Path) -> Path | None:
    """The one binary shortlist, if there is any.

    Raises:
        ForeignModelError: There are several.
    """
    found = [path for path in _named(source, "lex.") if path.name.endswith((".bin", ".bin.gz"))]
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise refused(source, f"has {len(found)} shortlists ({names}); one is read")
    return next(iter(found), None)


def _shortlist_notes(shortlist: Path | None) -> list[str]:
    return [] if shortlist is None else [_SHORTLIST_NOTE.format(shortlist.name)]
