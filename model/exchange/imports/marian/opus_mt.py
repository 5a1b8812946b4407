"""Importer of OPUS-MT releases: a Marian model, SentencePiece files, vocab.yml, README.md.

Owns the files of a release and what README.md and preprocess.sh say of languages and text. The
network is `model.py`'s, the cleaning of text `model.text.subwords.normalisation`'s.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from model.errors import ForeignModelError
from model.exchange.imports.imported import ImportedModel, ImportOptions
from model.exchange.imports.language_tokens import FAMILIES, opus_tag, without_usual_scripts
from model.exchange.imports.languages import nearest_pairs
from model.exchange.imports.marian.files import read_small
from model.exchange.imports.marian.importer import (
    find_files,
    folder_files,
    model_files,
    search_notes,
)
from model.exchange.imports.marian.model import (
    MarianFacts,
    MarianSources,
    build_model,
    is_marian_file,
)
from model.exchange.imports.marian.vocabulary import read_vocabulary
from model.exchange.imports.problems import attempted
from model.text.languages.tags import LanguagePair, primary_language
from model.text.subwords.moses import MosesBpe

_README = "README.md"
_MAX_README_BYTES = 16 * 2**20
_MAX_SCORES = 12
_LABEL = re.compile(r">>([A-Za-z0-9_-]{2,40})<<")
_SOURCES = re.compile(r"^\* *source languages?(?:\(s\))?: *(.*)$", re.MULTILINE)
_TARGETS = re.compile(r"^\* *target languages?(?:\(s\))?: *(.*)$", re.MULTILINE)
_LABELS = re.compile(r"^\* *valid (?:target )?language labels: *(.*)$", re.MULTILINE)
_FOLDER = re.compile(r"/[A-Za-z-]*models/([^/ ]+)/[^/ ]+\.zip")
_SCORE = re.compile(r"^\| *([\w.+-]+)[ \t]*\|[ \t]*([0-9]+\.[0-9]+)[ \t]*\|", re.MULTILINE)
_RELEASE = re.compile(r"^# +(\S+)\.zip", re.MULTILINE)
_TOKEN_REQUIRED = "language token is required"  # noqa: S105  # a sentence of README.md


@dataclass(frozen=True, slots=True, kw_only=True)
class _Readme:
    """Last release of a model by its README.md.

    Attributes:
        name: Of the release.
        sources: Language codes.
        targets: The same of the target.
        labels: Tokens that choose a target; empty where it lists none.
        needs_label: A source must begin with one.
        scores: Names of test sets with BLEU.
    """

    name: str = ""
    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    needs_label: bool = False
    scores: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class OpusMtImporter:
    """An unpacked release."""

    name: str = "OPUS-MT"

    def recognises(self, source: Path) -> bool:
        """Whether a folder has a Marian model and the pieces of source and target."""
        try:
            has_pieces = any((source / f"source.{kind}").is_file() for kind in ("spm", "bpe"))
        except (OSError, ValueError):
            return False
        return has_pieces and any(map(is_marian_file, model_files(source)))

    def read(self, source: Path, options: ImportOptions) -> ImportedModel:
        """Headers, options, vocabularies, README.md.

        Raises:
            ForeignModelError: With everything that is in the way.
        """
        files, settings = find_files(source)
        problems = [*files.problems]
        readme = attempted(problems, lambda: _read_readme(source)) or _Readme()
        pairs = _found_pairs(source, files, readme, options, problems)
        name = readme.name or source.name
        notes = [*search_notes(settings, files), *_score_notes(readme)]
        return build_model(
            source,
            _with_text_rules(source, replace(files, problems=tuple(problems)), pairs),
            MarianFacts(
                format="OPUS-MT",
                name=name,
                description=f"OPUS-MT {name}",
                pairs=pairs,
                licence=_licence(source),
                notes=tuple(notes),
            ),
        )


OPUS_MT = OpusMtImporter()


def _with_text_rules(
    folder: Path, files: MarianSources, pairs: Sequence[LanguagePair]
) -> MarianSources:
    """The files, and how text becomes pieces: releases of 2019 have merges, all others pieces."""
    merges = folder / "source.bpe", folder / "target.bpe"
    if not merges[0].is_file() or not pairs:
        return replace(files, normalisation="opus-mt")
    rules = MosesBpe(
        source_language=primary_language(pairs[0].source),
        target_language=primary_language(pairs[0].target),
        marks="continuation",
    )
    return replace(files, spms=merges, moses=rules)


def _read_readme(folder: Path) -> _Readme:
    path = folder / _README
    if not path.is_file():
        return _Readme()
    text = read_small(path, _MAX_README_BYTES).decode("utf-8", "replace")
    releases = list(_RELEASE.finditer(text))
    if releases:
        text = text[releases[-1].start() :]
    return _Readme(
        name=releases[-1][1] if releases else "",
        sources=_codes(text, _SOURCES, place=0),
        targets=_codes(text, _TARGETS, place=1),
        labels=tuple(_LABEL.findall("".join(_LABELS.findall(text)))),
        needs_label=_TOKEN_REQUIRED in text,
        scores=tuple((match[1], match[2]) for match in _SCORE.finditer(text)),
    )


def _codes(text: str, line: re.Pattern[str], *, place: int) -> tuple[str, ...]:
    """The codes of a line, or else of the folder that the release was published in."""
    match = line.search(text)
    if match is not None:
        return tuple(re.split(r"[\s,]+", match[1].strip()))
    folder = _FOLDER.search(text)
    pair = [] if folder is None else folder[1].split("-")
    return (pair[place],) if len(pair) == 2 else ()


def _found_pairs(
    folder: Path,
    files: MarianSources,
    readme: _Readme,
    options: ImportOptions,
    problems: list[str],
) -> tuple[LanguagePair, ...]:
    """The directions; those that are asked for where their tokens cannot be told, and problems."""
    table: Iterable[str] = ()
    try:
        table = read_vocabulary(files.vocabularies[0]).table
    except ForeignModelError as error:
        problems += [f"{error.path.name} {problem}" for problem in error.problems]
    try:
        return _pairs(folder, readme, table, options)
    except ForeignModelError as error:
        problems += error.problems
        return tuple(LanguagePair(source=one, target=two) for one, two in options.pairs)


def _pairs(
    folder: Path, readme: _Readme, table: Iterable[str], options: ImportOptions
) -> tuple[LanguagePair, ...]:
    """Every source with every target, chosen by its token where there are several.

    Raises:
        ForeignModelError: Somebody asks for a target that has no token.
    """
    labels = {match[1] for piece in table if (match := _LABEL.fullmatch(piece)) is not None}
    if readme.labels:
        labels &= set(readme.labels)
    is_tagged = bool(labels) and (readme.needs_label or len(readme.targets) != 1)
    tokens = _tokens(labels) if is_tagged else {}
    targets = tokens if is_tagged else _by_tag(readme.targets)
    sources = _by_tag(readme.sources)
    asked: Sequence[tuple[str, str]] = nearest_pairs(options.pairs, sources, targets) or [
        (source, target) for source in sources for target in targets
    ]
    missing = [target for _, target in asked if is_tagged and target not in tokens]
    if missing:
        known = ", ".join(tokens)
        problems = [f"has no token for the target {target}; it has {known}" for target in missing]
        raise ForeignModelError(folder, problems)
    return tuple(
        LanguagePair(
            source=source,
            target=target,
            source_prefix=(tokens[target],) if is_tagged else (),
        )
        for source, target in asked
        if source != target
    )


def _tokens(labels: Iterable[str]) -> dict[str, str]:
    """Tag → token; of several of one language as the family has it, else the shortest."""
    ordered = sorted(sorted(labels, reverse=True), key=len)
    return dict(sorted(FAMILIES["opus-mt"].tokens(f">>{label}<<" for label in ordered).items()))


def _by_tag(codes: Sequence[str]) -> dict[str, str]:
    """Tag → code; of several codes of one language the shortest, and what is none left out."""
    found: dict[str, str] = {}
    for code in sorted(codes, key=len, reverse=True):
        tag = opus_tag(code)
        if tag is not None:
            found[tag] = code
    return dict(sorted(without_usual_scripts(found).items()))


def _licence(folder: Path) -> str | None:
    """The licence that the file LICENSE begins with."""
    for path in folder_files(folder):
        if path.name.upper().startswith("LICENSE"):
            head = read_small(path, _MAX_README_BYTES)[:2_000].decode("utf-8", "replace")
            return _licence_name(head)
    return None


def _licence_name(text: str) -> str | None:
    if "Attribution-ShareAlike 4.0" in text:
        return "CC-BY-SA-4.0"
    if "Attribution 4.0" in text or "CC-BY 4.0" in text or "CC-BY-4.0" in text:
        return "CC-BY-4.0"
    return "Apache-2.0" if "Apache License" in text else None


def _score_notes(readme: _Readme) -> list[str]:
    if not readme.scores:
        return []
    shown_scores = ", ".join(f"{name} {bleu}" for name, bleu in readme.scores[:_MAX_SCORES])
    return [f"Published scores (BLEU): {shown_scores}."]
