"""Importer of CTranslate2 directories: model.bin, config.json, vocabularies, SentencePiece beside.

Owns what of such a directory becomes which part of a checkpoint, and what is said of one that
cannot be converted. The files are read by `file.py`, `directory.py` and `piece_files.py`; the
network is found by `network.py`, the directions by `directions.py`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from model.checkpoint.weights import TokenizerParts
from model.config import LengthLimits, ModelConfig, SpecialTokens
from model.errors import ForeignModelError, shown
from model.exchange.imports.ctranslate2.directions import Directions, Facts, find_directions
from model.exchange.imports.ctranslate2.directory import (
    SHORTLIST_FILE,
    USUAL_SETTINGS,
    Settings,
    Vocabularies,
    read_settings,
    read_vocabularies,
)
from model.exchange.imports.ctranslate2.file import WEIGHTS_FILE, VariableFile, specification_of
from model.exchange.imports.ctranslate2.network import (
    Description,
    depths,
    describe,
    has_relative_positions,
    num_rows,
)
from model.exchange.imports.imported import ForeignTensor, ImportedModel, ImportOptions
from model.exchange.imports.language_tokens import FAMILIES
from model.exchange.imports.numbering import Numbering, TokenNames, number_pieces, unmoved
from model.exchange.imports.piece_files import PieceFiles, find_piece_files
from model.exchange.imports.problems import attempted
from model.system.paths import is_file
from model.text.languages.tags import Language, LanguagePair
from model.text.subwords.pieces import PieceModel

MAX_LENGTH = 256
"""Tokens of a sentence: what the engine writes at most by itself."""

_SPECIFICATIONS = frozenset({"TransformerSpec", "TransformerBase", "TransformerBig"})
_OLDEST_REVISION = 2
_ZERO_START = "decoder/start_from_zero_embedding"
_OPENNMT_PAD = "<blank>"
_PADS = frozenset({_OPENNMT_PAD, "<pad>"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDirectory:
    """A directory whose network, ids and tokenizer fit each other.

    Attributes:
        family: For people.
    """

    family: str
    network: ModelConfig
    tensors: Mapping[str, ForeignTensor]
    tokens: SpecialTokens
    tokenizer: TokenizerParts
    pairs: tuple[LanguagePair, ...]
    languages: tuple[Language, ...]
    limits: LengthLimits
    notes: tuple[str, ...]


class CTranslate2Importer:
    """Directories of the encoder-decoder specification, in any quantisation."""

    name = "CTranslate2 directory"
    families = tuple(FAMILIES)

    def __repr__(self) -> str:
        return f"<{self.name} importer>"

    def recognises(self, source: Path) -> bool:
        """Whether `source` is a folder with a model.bin of CTranslate2, of any specification."""
        return specification_of(source / WEIGHTS_FILE) is not None

    def read(self, source: Path, options: ImportOptions) -> ImportedModel:
        """Headers, vocabularies and settings; no weights yet.

        Raises:
            ForeignModelError: With every problem.
        """
        found = read_directory(
            source,
            read_pieces=lambda: find_piece_files(source),
            choose=lambda facts: find_directions(facts, options),
        )
        return ImportedModel(
            family=found.family,
            format="CTranslate2",
            name=source.resolve().name,
            description=f"Converted from the CTranslate2 directory {source.resolve().name}",
            licence=None,
            licences=(),
            network=found.network,
            tokens=found.tokens,
            pairs=found.pairs,
            limits=found.limits,
            tokenizer=found.tokenizer,
            tensors=found.tensors,
            notes=found.notes,
            languages=found.languages,
        )


def read_directory(
    directory: Path,
    *,
    read_pieces: Callable[[], PieceFiles],
    choose: Callable[[Facts], Directions],
    problems: Sequence[str] = (),
) -> ReadDirectory:
    """A CTranslate2 directory, whoever made it.

    Args:
        directory: With model.bin.
        read_pieces: Finds what makes pieces of text; its problems are listed too.
        choose: Says what it translates, and how it is asked.
        problems: What is known to be wrong already.

    Raises:
        ForeignModelError: With every problem.
    """
    file = _transformer_file(directory)
    found = [*problems]
    settings = attempted(found, lambda: read_settings(directory, file))
    vocabularies = attempted(found, lambda: read_vocabularies(directory))
    pieces = attempted(found, read_pieces)
    is_marian = attempted(found, lambda: bool(file.number(_ZERO_START, 0.0)))
    text = None
    if vocabularies is not None and pieces is not None and is_marian is not None:
        parts = _Parts(
            settings=settings or USUAL_SETTINGS,
            vocabularies=vocabularies,
            pieces=pieces,
            is_marian=is_marian,
        )
        text = attempted(found, lambda: _text(directory, file, parts, choose))
    found += text.problems if text is not None else ()
    numbering = None
    if text is not None and settings is not None:  # usual names may be none of its vocabulary
        numbering = attempted(found, text.numbering)
    description = attempted(found, lambda: _described(file, vocabularies, numbering, settings))
    found += description.problems if description is not None else ()
    if found or text is None or numbering is None or description is None:
        raise ForeignModelError(directory, list(dict.fromkeys(found)))
    return _whole(directory, text, numbering, description)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Files beside model.bin, and the one number in it that says how to read them.

    Attributes:
        settings: The usual ones where those of the directory cannot be read.
    """

    settings: Settings
    vocabularies: Vocabularies
    pieces: PieceFiles
    is_marian: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """The text of a directory: what it translates, and the tokens around it.

    Attributes:
        parts: The files.
        directions: As they were chosen.
        pairs: Their pairs, with what begins each source.
        names: The special tokens.
        problems: Of directions and tokens.
    """

    parts: _Parts
    directions: Directions
    pairs: tuple[LanguagePair, ...]
    names: TokenNames
    problems: tuple[str, ...]

    def numbering(self) -> Numbering:
        """The ids of both sides.

        Raises:
            ConfigError: A vocabulary lacks a special token.
        """
        return number_pieces(
            self.parts.vocabularies.source,
            self.parts.vocabularies.target,
            self.names,
            nameless=_nameless(self.parts, self.names, self.directions),
        )


def _text(
    directory: Path, file: VariableFile, parts: _Parts, choose: Callable[[Facts], Directions]
) -> _Text:
    directions = choose(_facts(directory, file, parts))
    pairs = _with_source_bos(parts.settings, directions.pairs)
    names = _names(parts, directions)
    return _Text(
        parts=parts,
        directions=directions,
        pairs=pairs,
        names=names,
        problems=(*directions.problems, *_token_problems(parts, names, pairs)),
    )


def _whole(
    directory: Path, text: _Text, numbering: Numbering, description: Description
) -> ReadDirectory:
    """What nothing is in the way of."""
    assert description.network is not None
    directions, pairs = text.directions, text.pairs
    return ReadDirectory(
        family=_family(text.parts, directions),
        network=description.network,
        tensors=description.tensors,
        tokens=numbering.tokens,
        tokenizer=_tokenizer(text.parts.pieces, numbering),
        pairs=pairs,
        languages=directions.languages if pairs == directions.pairs else (),
        limits=_limits(description, pairs),
        notes=(*_notes(directory, text.names), *directions.notes),
    )


def _transformer_file(directory: Path) -> VariableFile:
    file = VariableFile(directory / WEIGHTS_FILE)
    if file.specification in _SPECIFICATIONS and file.revision >= _OLDEST_REVISION:
        return file
    problem = (
        f"is of specification {shown(file.specification)}, revision {file.revision}; only"
        f" encoder-decoder Transformers from revision {_OLDEST_REVISION} on are converted"
    )
    raise ForeignModelError(file.path, [problem])


def _facts(directory: Path, file: VariableFile, parts: _Parts) -> Facts:
    return Facts(
        directory=directory,
        source=parts.vocabularies.source,
        target=parts.vocabularies.target,
        pieces=None if parts.pieces.moses is not None else PieceModel(parts.pieces.source),
        is_marian=parts.is_marian,
        is_relative=has_relative_positions(file),
        depths=depths(file),
    )


def _described(
    file: VariableFile,
    vocabularies: Vocabularies | None,
    numbering: Numbering | None,
    settings: Settings | None,
) -> Description:
    """The network; where its ids are not known, all the same what is wrong with its variables."""
    if numbering is None:
        sizes = (
            num_rows(file)
            if vocabularies is None
            else (len(vocabularies.source), len(vocabularies.target))
        )
        numbering = unmoved(*sizes)
    epsilon = None if settings is None else settings.layer_norm_epsilon
    return describe(file, numbering, layer_norm_epsilon=epsilon)


def _family(parts: _Parts, directions: Directions) -> str:
    if directions.family is not None:
        return directions.family.title
    return "Marian" if parts.is_marian else "Transformer"


def _names(parts: _Parts, directions: Directions) -> TokenNames:
    """The special tokens. Where config.json adds no EOS, callers of the engine may have done so.

    Marian's sources always end with EOS, and those of Hugging Face's networks, whose tokenizers
    add it and which have a `<pad>`. OpenNMT's do not; its padding is `<blank>`. Decoders of
    multilingual families start with EOS where their caller could choose.
    """
    settings, source = parts.settings, parts.vocabularies.source
    is_huggingface = "<pad>" in source and _OPENNMT_PAD not in source
    is_multilingual = directions.family is not None
    start = settings.start or (settings.eos if is_multilingual else None)
    return TokenNames(
        unk=settings.unk,
        bos=settings.bos,
        eos=settings.eos,
        start=None if parts.is_marian else start,
        has_source_eos=(
            settings.has_source_eos or parts.is_marian or is_huggingface or is_multilingual
        ),
    )


def _nameless(parts: _Parts, names: TokenNames, directions: Directions) -> frozenset[str]:
    """Fillers of a multilingual vocabulary, which no text has, and tokens that no direction uses.

    What the SentencePiece files of both sides do not know is one, but for special tokens and the
    tokens of directions.
    """
    if directions.family is None or parts.is_marian:
        return frozenset()
    files = (parts.pieces.source, parts.pieces.target)
    models = [PieceModel(data) for data in files if data is not None]
    prefixes = {
        each for pair in directions.pairs for each in (pair.source_start, pair.target_prefix)
    }
    kept = {names.unk, names.bos, names.eos, names.start, *_PADS}.union(*prefixes)
    pieces = {*parts.vocabularies.source, *parts.vocabularies.target} - kept
    return frozenset(
        piece for piece in pieces if all(model.own_id(piece) is None for model in models)
    )


def _tokenizer(pieces: PieceFiles, numbering: Numbering) -> TokenizerParts:
    return TokenizerParts(
        source_pieces=pieces.source,
        source_table=numbering.source_table,
        target_pieces=pieces.target,
        target_table=numbering.target_table,
        moses=pieces.moses,
    )


def _with_source_bos(
    settings: Settings, pairs: tuple[LanguagePair, ...]
) -> tuple[LanguagePair, ...]:
    if not settings.has_source_bos:
        return pairs
    return tuple(replace(pair, source_prefix=(settings.bos, *pair.source_prefix)) for pair in pairs)


def _token_problems(
    parts: _Parts, names: TokenNames, pairs: Sequence[LanguagePair]
) -> Iterator[str]:
    """Tokens that a caller of the engine would give it, and that no file names."""
    vocabularies = parts.vocabularies
    if names.start is None and not parts.is_marian:
        yield "its first target token is chosen by its callers, which is not supported"
    for side in ("source", "target"):
        known = frozenset(getattr(vocabularies, side))
        prefixes = dict.fromkeys(
            piece for pair in pairs for piece in getattr(pair, f"{side}_prefix")
        )
        for piece in prefixes:
            if piece not in known:
                yield f"the {side} vocabulary lacks {shown(piece)}, which begins each {side}"
    yield from parts.pieces.problems(vocabularies.source, vocabularies.target)


def _limits(description: Description, pairs: Sequence[LanguagePair]) -> LengthLimits:
    longest = description.num_positions or MAX_LENGTH
    prefix = max((len(pair.target_prefix) for pair in pairs), default=0)
    return LengthLimits(
        max_source_length=min(MAX_LENGTH, longest),
        max_target_length=max(1, min(MAX_LENGTH, longest - prefix)),
    )


def _notes(directory: Path, names: TokenNames) -> Iterator[str]:
    yield (
        f"{names.unk} is never written. CTranslate2 may write it, and its callers may put a word of"
        " the source in its place."
    )
    if names.has_source_eos:
        yield f"Sources end with {names.eos}."
    if is_file(directory / SHORTLIST_FILE, _unusable):
        yield f"The vocabulary map {SHORTLIST_FILE} is not used: all target pieces are considered."


def _unusable(path: Path, problem: str) -> ForeignModelError:
    return ForeignModelError(path, [problem])
