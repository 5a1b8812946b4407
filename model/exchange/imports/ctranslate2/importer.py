"""Importer of CTranslate2 directories: model.bin, config.json, vocabularies, SentencePiece beside.

Owns what of such a directory becomes which part of a checkpoint, and what is said of one that
cannot be converted. The files are read by `file.py`, `directory.py` and
`piece_files.py`; the network is found by `network.py`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from model.checkpoint.weights import TokenizerParts
from model.config import LengthLimits, ModelConfig, SpecialTokens
from model.errors import ForeignModelError, shown
from model.exchange.imports.ctranslate2.directory import (
    SHORTLIST_FILE,
    Settings,
    Vocabularies,
    read_settings,
    read_vocabularies,
)
from model.exchange.imports.ctranslate2.file import WEIGHTS_FILE, VariableFile, specification_of
from model.exchange.imports.ctranslate2.network import Description, describe
from model.exchange.imports.imported import ForeignTensor, ImportedModel, ImportOptions
from model.exchange.imports.numbering import Numbering, TokenNames, number_pieces
from model.exchange.imports.piece_files import PieceFiles, find_piece_files
from model.exchange.imports.problems import attempted
from model.system.paths import is_file
from model.text.language import LanguagePair

MAX_LENGTH = 256
"""Tokens of a sentence: what the engine writes at most by itself."""

_SPECIFICATIONS = frozenset({"TransformerSpec", "TransformerBase", "TransformerBig"})
_OLDEST_REVISION = 2
_ZERO_START = "decoder/start_from_zero_embedding"
_OPENNMT_PAD = "<blank>"
_PAD = "<pad>"
_LANGUAGE_TOKEN = re.compile(r"__[a-z]{2,3}__|>>[A-Za-z_]+<<|<2[A-Za-z_]+>|[a-z]{3}_[A-Z][a-z]{3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDirectory:
    """A directory whose network, ids and tokenizer fit each other.

    Attributes:
        is_marian: Its decoder starts from a zero vector, as Marian's do.
    """

    network: ModelConfig
    tensors: Mapping[str, ForeignTensor]
    tokens: SpecialTokens
    tokenizer: TokenizerParts
    pairs: tuple[LanguagePair, ...]
    limits: LengthLimits
    is_marian: bool
    notes: tuple[str, ...]


class CTranslate2Importer:
    """Directories of the encoder-decoder specification, in any quantisation."""

    name = "CTranslate2 directory"

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
        problems: list[str] = []
        pairs = tuple(LanguagePair(source=one, target=two) for one, two in options.pairs)
        if not pairs:
            problems.append("its files do not say which languages it translates; name them")
        found = read_directory(
            source, read_pieces=lambda: find_piece_files(source), pairs=pairs, problems=problems
        )
        return ImportedModel(
            family="Marian" if found.is_marian else "Transformer",
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
        )


def read_directory(
    directory: Path,
    *,
    read_pieces: Callable[[], PieceFiles],
    pairs: tuple[LanguagePair, ...],
    problems: Sequence[str] = (),
) -> ReadDirectory:
    """A CTranslate2 directory, whoever made it.

    Args:
        directory: With model.bin.
        read_pieces: Finds what makes pieces of text; its problems are listed too.
        pairs: Its directions; one that has a target prefix says itself which language is asked for.
        problems: What is known to be wrong already.

    Raises:
        ForeignModelError: With every problem.
    """
    file = _transformer_file(directory)
    found = [*problems]
    parts = _parts(directory, file, read_pieces, found)
    if parts is None:
        raise ForeignModelError(directory, found)
    names, pairs = _names(parts), _with_source_bos(parts.settings, pairs)
    found += _token_problems(parts, pairs)
    described = attempted(found, lambda: _described(file, parts, names))
    found += described[1].problems if described is not None else ()
    if found or described is None:
        raise ForeignModelError(directory, found)
    numbering, description = described
    assert description.network is not None
    return ReadDirectory(
        network=description.network,
        tensors=description.tensors,
        tokens=numbering.tokens,
        tokenizer=_tokenizer(parts.pieces, numbering),
        pairs=pairs,
        limits=_limits(description, pairs),
        is_marian=parts.is_marian,
        notes=tuple(_notes(directory, names)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What lies beside model.bin, and the one thing in it that says how to read that."""

    settings: Settings
    vocabularies: Vocabularies
    pieces: PieceFiles
    is_marian: bool


def _transformer_file(directory: Path) -> VariableFile:
    file = VariableFile(directory / WEIGHTS_FILE)
    if file.specification in _SPECIFICATIONS and file.revision >= _OLDEST_REVISION:
        return file
    problem = (
        f"is of specification {shown(file.specification)}, revision {file.revision}; only"
        f" encoder-decoder Transformers from revision {_OLDEST_REVISION} on are converted"
    )
    raise ForeignModelError(file.path, [problem])


def _parts(
    directory: Path,
    file: VariableFile,
    read_pieces: Callable[[], PieceFiles],
    problems: list[str],
) -> _Parts | None:
    """All parts; None, and problems, where one of them cannot be read."""
    settings = attempted(problems, lambda: read_settings(directory, file))
    vocabularies = attempted(problems, lambda: read_vocabularies(directory))
    pieces = attempted(problems, read_pieces)
    is_marian = attempted(problems, lambda: bool(file.number(_ZERO_START, 0.0)))
    if settings is None or vocabularies is None or pieces is None or is_marian is None:
        return None
    return _Parts(settings=settings, vocabularies=vocabularies, pieces=pieces, is_marian=is_marian)


def _described(
    file: VariableFile, parts: _Parts, names: TokenNames
) -> tuple[Numbering, Description]:
    vocabularies, epsilon = parts.vocabularies, parts.settings.layer_norm_epsilon
    numbering = number_pieces(vocabularies.source, vocabularies.target, names)
    return numbering, describe(file, numbering, layer_norm_epsilon=epsilon)


def _names(parts: _Parts) -> TokenNames:
    """The special tokens. Where config.json adds no EOS, callers of the engine may have done so.

    Marian's sources always end with EOS, and those of Hugging Face's networks, whose tokenizers
    add it and which have a `<pad>`. OpenNMT's do not; its padding is `<blank>`.
    """
    settings, source = parts.settings, parts.vocabularies.source
    is_huggingface = _PAD in source and _OPENNMT_PAD not in source
    return TokenNames(
        unk=settings.unk,
        bos=settings.bos,
        eos=settings.eos,
        start=None if parts.is_marian else settings.start,
        has_source_eos=settings.has_source_eos or parts.is_marian or is_huggingface,
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
    return tuple(replace(pair, source_prefix=(settings.bos,)) for pair in pairs)


def _token_problems(parts: _Parts, pairs: Sequence[LanguagePair]) -> Iterator[str]:
    """Tokens that a caller of the engine would give it, and that no file names."""
    vocabularies = parts.vocabularies
    if parts.settings.start is None and not parts.is_marian:
        yield "its first target token is chosen by its callers, which is not supported"
    tags = [piece for piece in vocabularies.target if _LANGUAGE_TOKEN.fullmatch(piece)]
    if tags and not any(pair.target_prefix for pair in pairs):
        yield (
            f"its vocabulary has language tokens ({len(tags)}, the first is {shown(tags[0])}), and"
            " no file says where they stand; convert the model that this one was made of"
        )
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
