"""A model of Marian's put together: network, vocabularies and special tokens.

Owns what all releases of Marian models have in common, once it is known which files they are:
`importer.py`, `opus_mt.py`, `firefox.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from model.checkpoint.files.verification import MAX_TOKENIZER_BYTES
from model.checkpoint.manifest import Licence
from model.checkpoint.weights import TokenizerParts
from model.config import LengthLimits, SpecialTokens
from model.errors import ConfigError, ForeignModelError
from model.exchange.imports.completeness import unfilled, unread
from model.exchange.imports.imported import ImportedModel
from model.exchange.imports.marian.bin import is_bin, open_bin
from model.exchange.imports.marian.files import MarianFile, read_small
from model.exchange.imports.marian.network import MarianNetwork, MarianTensors, find_network
from model.exchange.imports.marian.npz import is_npz, open_npz
from model.exchange.imports.marian.options import parse_shape
from model.exchange.imports.marian.shortlist import read_shortlist
from model.exchange.imports.marian.vocabulary import MarianVocabulary, read_vocabulary
from model.shortlist import Shortlist
from model.text.languages.tags import LanguagePair
from model.text.subwords.bpe import Merges
from model.text.subwords.moses import MosesBpe
from model.text.subwords.normalisation import Normalisation
from model.text.subwords.pieces import PieceModel

T = TypeVar("T")

_ALPHAS_NOTE = (
    "The file's multipliers of activations are not used: activations are quantised with a scale"
    " for each row, which is finer."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarianSources:
    """The files of one model.

    Attributes:
        model: `.npz` or `.bin`.
        vocabularies: Of source and target; may be one file twice.
        spms: SentencePiece files of both sides, where the vocabularies are none; files of merges
            with `moses`.
        moses: How text becomes pieces without SentencePiece.
        normalisation: How source text is cleaned before.
        shortlist: Marian's binary shortlist; None: there is none.
        problems: What is wrong with files that are not among them.
    """

    model: Path
    vocabularies: tuple[Path, Path]
    spms: tuple[Path, Path] | None = None
    moses: MosesBpe | None = None
    normalisation: Normalisation | None = None
    shortlist: Path | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MarianFacts:
    """Facts of a model besides its files.

    Attributes:
        format: Of the release, for people.
        name: Suggested name of the checkpoint.
        description: One line for people.
        pairs: Directions.
        licence: Of the weights; None if nothing says it.
        licences: Of what it was made of.
        limits: Greatest lengths.
        notes: Sentences for the card.
    """

    format: str
    name: str
    description: str
    pairs: tuple[LanguagePair, ...]
    licence: str | None = None
    licences: tuple[Licence, ...] = ()
    limits: LengthLimits = field(
        default_factory=lambda: LengthLimits(max_source_length=512, max_target_length=512)
    )
    notes: tuple[str, ...] = ()


def is_marian_file(path: Path) -> bool:
    """Whether a file has a network of Marian's in it; false where it cannot be read."""
    return is_npz(path) or is_bin(path)


def open_marian_file(path: Path) -> MarianFile:
    """Header and options of a model file, by its content.

    Raises:
        ForeignModelError: It is none, or damaged.
    """
    return open_npz(path) if is_npz(path) else open_bin(path)


def build_model(source: Path, files: MarianSources, facts: MarianFacts) -> ImportedModel:
    """The model, ready to be written.

    Args:
        source: What was to be imported, for errors.
        files: Its files.
        facts: What else is known.

    Raises:
        ForeignModelError: With everything that is in the way.
    """
    vocabularies, found = _read_vocabularies(files)
    problems = [*files.problems, *found]
    tensors, found = _read_network(files.model)
    problems += found
    shortlist = None
    if tensors is not None and vocabularies:
        problems += _size_problems(tensors, vocabularies)
        shortlist = _attempted(problems, lambda: _read_shortlist(files, tensors))
    pieces = _read_all_pieces(files, problems)
    problems += [] if facts.pairs else ["no file says which languages it translates; name a pair"]
    network = None if tensors is None else tensors.network
    if problems or network is None:
        unused = () if tensors is None else tensors.unused
        raise ForeignModelError(source, [*dict.fromkeys(problems), *unread(unused)])
    notes = (*facts.notes, *([_ALPHAS_NOTE] if network.has_alphas else []))
    return ImportedModel(
        family="marian",
        format=facts.format,
        name=facts.name,
        description=facts.description,
        licence=facts.licence,
        licences=facts.licences,
        network=network.config,
        tokens=_tokens(network, vocabularies),
        pairs=facts.pairs,
        limits=_limits(network, facts.limits),
        tokenizer=_tokenizer(files, vocabularies, pieces),
        tensors=network.tensors,
        shortlist=shortlist,
        unused=network.unused,
        notes=notes,
    )


def _read_vocabularies(files: MarianSources) -> tuple[list[MarianVocabulary], list[str]]:
    """Both vocabularies, or none and what is wrong with them; equal paths are read once."""
    found: dict[Path, MarianVocabulary] = {}
    problems = []
    for path in dict.fromkeys(files.vocabularies):
        try:
            found[path] = read_vocabulary(path)
        except ForeignModelError as error:
            problems += [f"{path.name} {problem}" for problem in error.problems]
    if problems:
        return [], problems
    source, target = (found[path] for path in files.vocabularies)
    for what in ("eos_id", "unk_id"):
        ids = getattr(source, what), getattr(target, what)
        if ids[0] != ids[1]:
            problems.append(f"{what} is {ids[0]} in the source and {ids[1]} in the target")
    if files.spms is None:
        bare = [path.name for path in found if found[path].spm is None]
        problems += [f"{name} is no SentencePiece file, and none is beside it" for name in bare]
    return [source, target], problems


def _attempted(problems: list[str], read: Callable[[], T]) -> T | None:
    """What `read` gives; None, and problems that begin with the file's name, if it cannot."""
    try:
        return read()
    except ForeignModelError as error:
        problems += [f"{error.path.name} {problem}" for problem in error.problems]
        return None


def _read_network(path: Path) -> tuple[MarianTensors | None, list[str]]:
    """Tensors and what is wrong with them and the options; none of what is no transformer."""
    problems: list[str] = []
    file = _attempted(problems, lambda: open_marian_file(path))
    if file is None:
        return None, problems
    if not file.options:
        return None, [f"{path.name} has no options (special:model.yml)"]
    shape, problems = parse_shape(file.options)
    if shape is None:
        return None, problems
    tensors = find_network(file, shape)
    return tensors, [*problems, *tensors.problems]


def _read_shortlist(files: MarianSources, tensors: MarianTensors) -> Shortlist | None:
    """The shortlist, if there is one and both sides of it have a table.

    Raises:
        ForeignModelError: It is damaged, or of another network.
    """
    path = files.shortlist
    if path is None or not (tensors.source_size and tensors.target_size):
        return None
    source, target = files.vocabularies
    return read_shortlist(
        path,
        num_sources=tensors.source_size,
        num_targets=tensors.target_size,
        num_rows=tensors.num_rows,
        with_source=source == target,
    )


def _size_problems(tensors: MarianTensors, vocabularies: list[MarianVocabulary]) -> list[str]:
    """Vocabularies that are not their tables'; those without a table are told as missing."""
    sizes = {"source": tensors.source_size, "target": tensors.target_size}
    problems: list[str] = []
    for (side, size), vocabulary in zip(sizes.items(), vocabularies, strict=True):
        if not size:
            continue
        ids, name = set(vocabulary.table.values()), f"the {side} vocabulary {vocabulary.path.name}"
        if max(ids) >= size:
            problems.append(f"{name} has id {max(ids)}; the network has {size} rows")
        else:
            problems += unfilled(name, len(ids), size)
    return problems


def _tokens(network: MarianNetwork, vocabularies: list[MarianVocabulary]) -> SpecialTokens:
    """Special ids; what the target's table does not name, or Marian bans, is never generated."""
    target = vocabularies[1]
    pad = network.config.pad_id
    nameless = set(range(network.config.output_size)) - set(target.table.values())
    return SpecialTokens(
        pad_id=pad,
        eos_id=target.eos_id,
        unk_id=target.unk_id,
        start_id=pad,
        suppressed_ids=tuple(sorted({pad, *nameless, *target.banned_ids()})),
    )


def _limits(network: MarianNetwork, limits: LengthLimits) -> LengthLimits:
    """The lengths, within a learned table of positions."""
    if network.config.position != "learned":
        return limits
    rows = network.config.max_positions
    return LengthLimits(
        max_source_length=min(limits.max_source_length, rows),
        max_target_length=min(limits.max_target_length, rows),
    )


def _read_all_pieces(files: MarianSources, problems: list[str]) -> list[bytes]:
    """The files of pieces of both sides, where the vocabularies are none; problems are added."""
    found = [
        _attempted(problems, partial(_read_pieces, path, files.moses)) for path in files.spms or ()
    ]
    return [data for data in found if data is not None]


def _tokenizer(
    files: MarianSources, vocabularies: list[MarianVocabulary], pieces: list[bytes]
) -> TokenizerParts:
    source, target = vocabularies
    if pieces:
        return TokenizerParts(
            source_pieces=pieces[0],
            source_table=source.table,
            target_pieces=pieces[1],
            target_table=target.table,
            moses=files.moses,
            normalisation=files.normalisation,
        )
    assert source.spm is not None
    is_shared = target.spm == source.spm
    return TokenizerParts(source_pieces=source.spm, target_pieces=None if is_shared else target.spm)


def _read_pieces(path: Path, moses: MosesBpe | None) -> bytes:
    data = read_small(path, MAX_TOKENIZER_BYTES)
    try:
        if moses is None:
            PieceModel(data)
        else:
            Merges(data, moses.marks)
    except ConfigError as error:
        raise ForeignModelError(path, [str(error)]) from error
    return data
