"""The directions of a CTranslate2 directory: recognised by its vocabulary, or said by a person.

Owns which family of multilingual networks a directory is of. The engine's own files do not say it:
the vocabulary has the tokens, tokenizer files that were copied beside may name the tokenizer, and
where both leave it open, `--family` tells. What the tokens of a family mean is
`model.exchange.imports.language_tokens`'.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from model.checkpoint.description.strict_json import parse_json
from model.checkpoint.files.checksums import read_limited
from model.checkpoint.files.verification import MAX_VOCABULARY_BYTES
from model.errors import CheckpointError, ConfigError, ForeignModelError, shown
from model.exchange.imports.fast_tokenizer import FAST_TOKENIZER, added_tokens
from model.exchange.imports.imported import ImportOptions
from model.exchange.imports.language_tokens import (
    FAMILIES,
    NLLB_LEGACY_PROBLEM,
    TokenFamily,
    chosen_directions,
    opus_directions,
    opus_name_pairs,
)
from model.exchange.imports.problems import NAME_DIRECTIONS
from model.exchange.imports.t5_prompts import prompted_directions, untagged_note
from model.system.paths import is_file
from model.text.languages.tags import Language, LanguagePair
from model.text.subwords.pieces import PieceModel

TOKENIZER_FILE = "tokenizer_config.json"
_SMALL100_CODE = "tokenization_small100.py"
_TOKENIZERS: Mapping[str, str] = MappingProxyType(
    {
        "NllbTokenizer": "nllb",
        "M2M100Tokenizer": "m2m100",
        "SMALL100Tokenizer": "small100",
        "MBart50Tokenizer": "mbart-50",
        "T5Tokenizer": "madlad",
        "MarianTokenizer": "opus-mt",
    }
)
"""Families by the tokenizers that transformers has for them; `Fast` at the end says nothing."""
_OWN_SUFFIX = re.compile(r"[-_.](ct2|ctranslate2?).*", re.IGNORECASE)
_FEWEST_TOKENS = 2
"""Fewer may be pieces of text that look like a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts of a directory that are known before its directions.

    Attributes:
        directory: With model.bin.
        source: Pieces by id.
        target: The same of the target, which may have other languages' tokens.
        pieces: Of the source's SentencePiece file; None for merges.
        is_marian: Its decoder starts from a zero vector.
        is_relative: Its positions are T5's.
        depths: Layers of the encoder and of the decoder.
    """

    directory: Path
    source: Sequence[str]
    target: Sequence[str]
    pieces: PieceModel | None
    is_marian: bool
    is_relative: bool
    depths: tuple[int, int]

    @property
    def sides(self) -> Sequence[Sequence[str]]:
        """The pieces of each side; once where both have the same."""
        return (self.source,) if self.source == self.target else (self.source, self.target)

    @property
    def both(self) -> Sequence[str]:
        """The pieces of both sides."""
        return tuple(piece for side in self.sides for piece in side)


@dataclass(frozen=True, slots=True, kw_only=True)
class Directions:
    """Directions that a directory translates, and the prompts that ask for them.

    Attributes:
        pairs: Directions.
        languages: Where each is translated into each other.
        family: None for a network of one direction, or of one that its caller knows.
        problems: What is in the way.
        notes: For the card.
    """

    pairs: tuple[LanguagePair, ...] = ()
    languages: tuple[Language, ...] = ()
    family: TokenFamily | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def find_directions(facts: Facts, options: ImportOptions) -> Directions:
    """The directions of a directory.

    Where an export carried along what asks for all of them, nothing of that is guessed.

    Raises:
        ForeignModelError: A tokenizer's file cannot be read.
    """
    found = _guessed(facts, options)
    if not options.carried or len(options.carried) < len(options.pairs):
        return found
    family = _family_of(options.carried, facts) if found.problems else found.family
    return replace(found, pairs=options.carried, languages=(), family=family, problems=())


def _family_of(pairs: Sequence[LanguagePair], facts: Facts) -> TokenFamily | None:
    """The family that all of these directions are asked for as; None if there is none.

    Networks that were trained here may have the tokens of a family that they are not of.
    """
    asking = (name for name, one in FAMILIES.items() if all(map(one.asks, pairs)))
    name = next(asking, None)
    if name is None:
        return None
    encoder, decoder = facts.depths
    is_own = {"madlad": not facts.is_relative, "small100": decoder >= encoder}.get(name, False)
    return replace(FAMILIES[name], title="Transformer") if is_own else FAMILIES[name]


def _guessed(facts: Facts, options: ImportOptions) -> Directions:
    """The directions by the vocabulary, and what a person says."""
    if facts.is_relative:
        return _of_t5(facts, options)
    found = _families(facts, options)
    if len(found) > 1:
        return Directions(problems=(_choice(facts, found),))
    if not found:
        return _of_one_pair(facts, options)
    family = found[0]
    if not family.tokens(facts.both):
        form = family.pattern.pattern
        problem = f"its vocabulary has no tokens of {family.title} ({form}), which --family names"
        return Directions(family=family, problems=(problem,))
    if family is FAMILIES["opus-mt"]:
        return _of_opus(facts, options)
    languages, pairs, problems = chosen_directions(
        family.languages(facts.both), options.pairs, names=(facts.directory.resolve().name,)
    )
    tokenizer = _object(facts.directory / TOKENIZER_FILE)
    if family is FAMILIES["nllb"] and tokenizer.get("legacy_behaviour"):
        problems.append(NLLB_LEGACY_PROBLEM)
    return Directions(
        pairs=pairs,
        languages=languages,
        family=family,
        problems=tuple(problems),
        notes=untagged_note(family.untagged(facts.both)),
    )


def language_token_problem(pieces: Sequence[str]) -> Iterator[str]:
    """A problem if a vocabulary has language tokens, for callers that know no family."""
    tokens = [
        piece
        for piece in pieces
        if any(family.pattern.fullmatch(piece) for family in FAMILIES.values())
    ]
    if tokens:
        yield (
            f"its vocabulary has language tokens ({len(tokens)}, the first is {shown(tokens[0])}),"
            " and no file says where they stand; convert the model that this one was made of"
        )


def _families(facts: Facts, options: ImportOptions) -> list[TokenFamily]:
    """Those that a directory may be of: the one that is said, or those whose tokens it has."""
    if options.family is not None:
        return [FAMILIES[options.family]]
    if facts.is_marian:
        opus = FAMILIES["opus-mt"]
        return [opus] if opus.tokens(facts.source) else []
    found = {
        name: family
        for name, family in FAMILIES.items()
        if any(len(family.tokens(side)) >= _FEWEST_TOKENS for side in facts.sides)
    }
    stated = _stated_family(facts.directory)
    if stated in found:
        return [found[stated]]
    if "small100" in found and facts.depths[0] == facts.depths[1]:
        del found["small100"]  # it alone has fewer layers in its decoder
    return list(found.values())


def _stated_family(directory: Path) -> str | None:
    """What the tokenizer's files say.

    Raises:
        ForeignModelError: They cannot be read.
    """
    if is_file(directory / _SMALL100_CODE, _unusable):
        return "small100"
    name = str(_object(directory / TOKENIZER_FILE).get("tokenizer_class") or "")
    return _TOKENIZERS.get(name.removesuffix("Fast"))


def _choice(facts: Facts, families: Sequence[TokenFamily]) -> str:
    names = {name for name, family in FAMILIES.items() if family in families}
    first = next(iter(families[0].tokens(facts.both).values()))
    flags = " or ".join(f"--family {name}" for name in FAMILIES if name in names)
    return (
        f"its vocabulary has language tokens such as {shown(first)}, and no file beside it"
        f" ({TOKENIZER_FILE}) says where they stand; {flags} does"
    )


def _of_one_pair(facts: Facts, options: ImportOptions) -> Directions:
    pairs = tuple(LanguagePair(source=one, target=two) for one, two in options.pairs)
    problems = [*language_token_problem(facts.source)]
    if not pairs:
        problems.append(f"its files do not say which languages it translates; {NAME_DIRECTIONS}")
    return Directions(pairs=pairs, problems=tuple(problems))


def _of_opus(facts: Facts, options: ImportOptions) -> Directions:
    """One source, which no token names, and the targets that have tokens."""
    name = _OWN_SUFFIX.sub("", facts.directory.resolve().name)
    wanted = options.pairs or opus_name_pairs(name, facts.source)
    pairs, problems = opus_directions(facts.source, wanted)
    if not wanted:
        targets = ", ".join(sorted(FAMILIES["opus-mt"].tokens(facts.source)))
        problems.append(
            f"its files do not say from which language it translates; {NAME_DIRECTIONS}, with"
            f" targets of {targets}"
        )
    family = FAMILIES["opus-mt"]
    return Directions(pairs=pairs, family=family, problems=tuple(problems))


def _of_t5(facts: Facts, options: ImportOptions) -> Directions:
    """Tags or words before the source."""
    if options.family not in (None, "madlad"):
        problem = f"its network is a T5, which --family {options.family} is not"
        return Directions(problems=(problem,))
    if facts.pieces is None:
        return Directions(problems=("its text is not cut by SentencePiece, as all T5's is",))
    asked = prompted_directions(facts.pieces, options.pairs, added=_added_pieces(facts.directory))
    madlad = FAMILIES["madlad"]
    return Directions(
        pairs=asked.pairs,
        languages=asked.languages,
        family=madlad if madlad.tokens(facts.source) else replace(madlad, title="T5"),
        problems=asked.problems,
        notes=asked.notes,
    )


def _added_pieces(directory: Path) -> set[str] | None:
    """What tokenizer.json cuts out of texts before SentencePiece sees them; None without it.

    Raises:
        ForeignModelError: It cannot be read.
    """
    path = directory / FAST_TOKENIZER
    return set(added_tokens(_object(path))) if is_file(path, _unusable) else None


def _object(path: Path) -> dict[str, object]:
    """A JSON object; an empty one where there is no such file.

    Raises:
        ForeignModelError: It is something else.
    """
    if not is_file(path, _unusable):
        return {}
    try:
        value = parse_json(read_limited(path, MAX_VOCABULARY_BYTES))
    except CheckpointError as error:
        raise ForeignModelError(path, [error.problem]) from error
    except ConfigError as error:
        raise ForeignModelError(path, [str(error)]) from error
    if not isinstance(value, dict):
        raise ForeignModelError(path, ["is no JSON object"])
    return value


def _unusable(path: Path, problem: str) -> ForeignModelError:
    return ForeignModelError(path, [problem])
