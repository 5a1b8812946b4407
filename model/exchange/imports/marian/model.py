"""A model of Marian's put together: network, vocabularies and special tokens.

Owns what all releases of Marian models have in common, once it is known which files they are:
`importer.py`, `opus_mt.py`, `firefox.py`.
"""

from dataclasses import dataclass, field
from pathlib import Path

from model.checkpoint.files.verification import MAX_TOKENIZER_BYTES
from model.checkpoint.manifest import Licence
from model.checkpoint.weights import TokenizerParts
from model.config import LengthLimits, SpecialTokens
from model.errors import ConfigError, ForeignModelError
from model.exchange.imports.completeness import unfilled, unread
from model.exchange.imports.imported import ImportedModel
from model.exchange.imports.marian.bin import is_bin, open_bin
from model.exchange.imports.marian.files import MarianFile, read_small
from model.exchange.imports.marian.network import MarianNetwork, build_network
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
    """

    model: Path
    vocabularies: tuple[Path, Path]
    spms: tuple[Path, Path] | None = None
    moses: MosesBpe | None = None
    normalisation: Normalisation | None = None
    shortlist: Path | None = None


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
    vocabularies, problems = _read_vocabularies(files)
    network: MarianNetwork | None = None
    shortlist: Shortlist | None = None
    try:
        network, found = _read_network(files.model)
        problems += found
    except ForeignModelError as error:
        problems += [f"{files.model.name} {problem}" for problem in error.problems]
    if network is not None and vocabularies:
        problems += _size_problems(network, vocabularies)
        shortlist, found = _read_shortlist(files, network)
        problems += found
    problems += [] if facts.pairs else ["no file says which languages it translates; name a pair"]
    if problems or network is None:
        unused = () if network is None else network.unused
        raise ForeignModelError(source, [*problems, *unread(unused)])
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
        tokenizer=_tokenizer(files, vocabularies),
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


def _read_network(path: Path) -> tuple[MarianNetwork | None, list[str]]:
    file = open_marian_file(path)
    if not file.options:
        return None, [f"{path.name} has no options (special:model.yml)"]
    shape, problems = parse_shape(file.options)
    if shape is None:
        return None, problems
    try:
        return build_network(file, shape)
    except ConfigError as error:
        return None, [str(error)]


def _read_shortlist(
    files: MarianSources, network: MarianNetwork
) -> tuple[Shortlist | None, list[str]]:
    """The shortlist, if there is one, or what is wrong with it."""
    path = files.shortlist
    if path is None:
        return None, []
    source, target = files.vocabularies
    try:
        shortlist = read_shortlist(
            path,
            num_sources=network.source_size,
            num_targets=network.target_size,
            num_rows=network.config.vocab_size,
            with_source=source == target,
        )
    except ForeignModelError as error:
        return None, [f"{path.name} {problem}" for problem in error.problems]
    return shortlist, []


def _size_problems(network: MarianNetwork, vocabularies: list[MarianVocabulary]) -> list[str]:
    sizes = {"source": network.source_size, "target": network.target_size}
    problems = []
    for (side, size), vocabulary in zip(sizes.items(), vocabularies, strict=True):
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


def _tokenizer(files: MarianSources, vocabularies: list[MarianVocabulary]) -> TokenizerParts:
    source, target = vocabularies
    if files.spms is not None:
        spms = [_read_pieces(path, files.moses) for path in files.spms]
        return TokenizerParts(
            source_pieces=spms[0],
            source_table=source.table,
            target_pieces=spms[1],
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
