"""Importer of Argos Translate packages: a CTranslate2 directory with text files around it.

Owns what a package says of itself (languages, licence, how text becomes pieces). The network is
read by `model.exchange.imports.ctranslate2.importer`; what a package brings for finding sentences
(`stanza`, `minisbd`, `spacy`) is not used.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from model.checkpoint.description.strict_json import parse_json
from model.checkpoint.files.checksums import read_limited
from model.errors import CheckpointError, ConfigError, ForeignModelError, InputError, shown
from model.exchange.imports.ctranslate2.directions import (
    Directions,
    Facts,
    language_token_problem,
)
from model.exchange.imports.ctranslate2.file import WEIGHTS_FILE, specification_of
from model.exchange.imports.ctranslate2.importer import read_directory
from model.exchange.imports.imported import ImportedModel, ImportOptions
from model.exchange.imports.piece_files import PieceFiles, find_piece_files, read_merges
from model.exchange.imports.problems import attempted
from model.system.paths import is_file
from model.text.languages.tags import ARGOS_CODES, LanguagePair, canonical_tag, primary_language
from model.text.subwords.moses import MosesBpe

_METADATA_FILE = "metadata.json"
_README_FILE = "README.md"
_PIECES_FILE = "sentencepiece.model"
_MERGES_FILE = "bpe.model"
_NETWORK_FOLDER = "model"
_MAX_BYTES = 2**20
_MAX_LICENCE = 100
_LICENCE = re.compile(r"\W*licen[sc]e\b[\s:]*(.*)", re.IGNORECASE)
_LINES_BELOW_HEADING = 3


class ArgosImporter:
    """Packages of Argos Translate, unpacked."""

    name = "Argos package"

    def __repr__(self) -> str:
        return f"<{self.name} importer>"

    def recognises(self, source: Path) -> bool:
        """Whether `source` is a folder with metadata.json and a network in `model`."""
        weights = source / _NETWORK_FOLDER / WEIGHTS_FILE
        try:
            return is_file(source / _METADATA_FILE) and specification_of(weights) is not None
        except Exception:  # whatever the system says, this is not one
            return False

    def read(self, source: Path, options: ImportOptions) -> ImportedModel:
        """Headers, vocabularies and settings; no weights yet.

        Raises:
            ForeignModelError: With every problem.
        """
        problems: list[str] = []
        metadata = attempted(problems, lambda: _metadata(source / _METADATA_FILE))
        pair = None
        if metadata is not None:
            problems += _metadata_problems(metadata)
            pair = attempted(problems, lambda: _pair(metadata, options))
        found = read_directory(
            source / _NETWORK_FOLDER,
            read_pieces=lambda: _piece_files(source, metadata or {}),
            choose=lambda facts: _directions(facts, pair),
            problems=problems,
        )
        assert metadata is not None  # without it there was a problem
        assert pair is not None
        version = metadata.get("package_version") or "unknown"
        return ImportedModel(
            family="OpenNMT",
            format="Argos Translate",
            name=f"argos-{pair.source}-{pair.target}",
            description=(
                f"Argos Translate's package from {pair.source} to {pair.target},"
                f" version {_short(str(version))}"
            ),
            licence=_licence(source, metadata),
            licences=(),
            network=found.network,
            tokens=found.tokens,
            pairs=found.pairs,
            limits=found.limits,
            tokenizer=found.tokenizer,
            tensors=found.tensors,
            notes=(
                *found.notes,
                "Argos Translate makes a space of each underscore that is written; here it stays.",
                "Argos Translate searches with length penalty 0.2 and 4 beams.",
            ),
        )


def _metadata(path: Path) -> Mapping[str, object]:
    value = None
    try:
        value = parse_json(read_limited(path, _MAX_BYTES))
    except CheckpointError as error:
        raise ForeignModelError(path, [error.problem]) from error
    except ConfigError as error:
        raise ForeignModelError(path, [str(error)]) from error
    if not isinstance(value, dict):
        raise ForeignModelError(path, ["is not a JSON object"])
    return value


def _metadata_problems(metadata: Mapping[str, object]) -> Iterator[str]:
    kind = metadata.get("type", "translate")
    if kind != "translate":
        yield f"{_METADATA_FILE}: type is {shown(kind)}; only translations are converted"
    prefix = metadata.get("target_prefix", "")
    if not isinstance(prefix, str):
        yield f"{_METADATA_FILE}: target_prefix is {shown(prefix)}; it must be a string"


def _pair(metadata: Mapping[str, object], options: ImportOptions) -> LanguagePair:
    """The one direction of a package.

    Raises:
        ConfigError: There is none, or several are asked for.
    """
    if len(options.pairs) > 1:
        raise ConfigError(f"{len(options.pairs)} directions are named; a package has one")
    if options.pairs:
        source, target = options.pairs[0]
    else:
        source, target = (_tag(metadata, name) for name in ("from_code", "to_code"))
    prefix = metadata.get("target_prefix")
    return LanguagePair(
        source=source,
        target=target,
        target_prefix=(prefix,) if isinstance(prefix, str) and prefix else (),
    )


def _directions(facts: Facts, pair: LanguagePair | None) -> Directions:
    if pair is None:
        return Directions()
    has_prefix = bool(pair.target_prefix)
    problems = () if has_prefix else language_token_problem(facts.source)
    return Directions(pairs=(pair,), problems=tuple(problems))


def _tag(metadata: Mapping[str, object], name: str) -> str:
    code = metadata.get(name)
    if not isinstance(code, str):
        raise ConfigError(f"{_METADATA_FILE}: {name} is {shown(code)}; it must be a language code")
    try:
        return ARGOS_CODES.get(code) or canonical_tag(code.replace("_", "-"))
    except InputError as error:
        raise ConfigError(f"{_METADATA_FILE}: {name} is {shown(code)}: {error}") from error


def _piece_files(source: Path, metadata: Mapping[str, object]) -> PieceFiles:
    """SentencePiece's file or, in older packages, merges of Moses' words.

    Raises:
        ForeignModelError: There is neither, or it is damaged.
        ConfigError: The languages of the words are not known.
    """
    has_merges = is_file(source / _MERGES_FILE, _unusable)
    if not has_merges or is_file(source / _PIECES_FILE, _unusable):
        return find_piece_files(source)
    rules = MosesBpe(
        source_language=primary_language(_tag(metadata, "from_code")),
        target_language=primary_language(_tag(metadata, "to_code")),
        marks="continuation",
        replaces_punctuation=False,
        removes_control_characters=False,
        splits_dashes=False,
    )
    return read_merges(source / _MERGES_FILE, rules)


def _licence(source: Path, metadata: Mapping[str, object]) -> str | None:
    """What metadata or README call the licence, as they write it."""
    for key in ("license", "licence"):
        value = metadata.get(key)
        if isinstance(value, str) and value.strip():
            return _short(value)
    path = source / _README_FILE
    if not is_file(path, _unusable):
        return None
    try:
        text = read_limited(path, _MAX_BYTES).decode(errors="replace")
    except CheckpointError as error:
        raise ForeignModelError(path, [error.problem]) from error
    return next(map(_short, _stated(text.splitlines())), None)


def _stated(lines: Sequence[str]) -> Iterator[str]:
    """What stands after the word licence: on its line, or below it where it is a heading."""
    for number, line in enumerate(lines):
        found = _LICENCE.match(line)
        if found is not None:
            after = (found[1], *lines[number + 1 : number + 1 + _LINES_BELOW_HEADING])
            yield from (text for text in after if any(map(str.isalpha, text)))


def _short(text: str) -> str:
    return " ".join("".join(filter(str.isprintable, " ".join(text.split()))).split())[:_MAX_LICENCE]


def _unusable(path: Path, problem: str) -> ForeignModelError:
    return ForeignModelError(path, [problem])
