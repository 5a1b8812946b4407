"""A family of networks that transformers has: what it expresses, and what its folder consists of.

Owns the types, and what all families have in common: special ids, the search that is proposed, the
SentencePiece files that a tokenizer is made of, and reasons why none can be.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from torch import Tensor

from model.checkpoint.description.strict_json import format_json
from model.checkpoint.manifest import Manifest
from model.checkpoint.weights import Checkpoint
from model.config import SearchConfig, SpecialTokens
from model.honoured import HonouredFields
from model.text.subwords.pieces import PieceModel

TOKENIZER_CONFIG = "tokenizer_config.json"

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True, kw_only=True)
class TokenizerFiles:
    """Files that `AutoTokenizer` reads.

    Attributes:
        contents: Files by their names.
        problems: Why the tokenizer of transformers cannot be the checkpoint's, as sentence
            fragments; the files are not to be used then.
    """

    contents: dict[str, bytes] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add_json(self, name: str, value: object) -> None:
        """Add a file."""
        self.contents[name] = format_json(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One kind of network, and the tokenizer that transformers has for it.

    Attributes:
        fields: What it can be told of a network; `by` is its name for people.
        config: What config.json says, but for names and special ids; asked of networks that
            `fields` honours.
        tensors: Names and float32 weights; those that transformers ties or computes are left out,
            and none shares memory with another.
        tokenizer: The files of its tokenizer.
    """

    fields: HonouredFields
    config: Callable[[Manifest], dict[str, object]]
    tensors: Callable[[Checkpoint], Iterator[tuple[str, Tensor]]]
    tokenizer: Callable[[Checkpoint], TokenizerFiles]


def inverse(names: Mapping[K, V]) -> dict[V, K]:
    """Value → name; of several names the first."""
    return {value: name for name, value in reversed(list(names.items()))}


def special_ids(tokens: SpecialTokens) -> dict[str, object]:
    """Special ids as both descriptions have them."""
    return {
        "pad_token_id": tokens.pad_id,
        "eos_token_id": tokens.eos_id,
        "bos_token_id": None,
        "decoder_start_token_id": tokens.start_id,
        "forced_eos_token_id": tokens.eos_id,
    }


def generation(checkpoint: Checkpoint) -> dict[str, object]:
    """The search that comes closest to our default one; the start token counts in its length.

    A language that is the only target is asked for; of several, whoever translates names one.
    """
    manifest, search = checkpoint.manifest, SearchConfig()
    prefixes = {pair.target_prefix for pair in manifest.pairs}
    (_, *forced) = checkpoint.tokenizer.target_prefix(manifest.pairs[0])
    only = forced[0] if len(prefixes) == 1 and len(forced) == 1 else None
    return {
        **special_ids(manifest.tokens),
        "forced_bos_token_id": only,
        "suppress_tokens": list(manifest.tokens.suppressed_ids) or None,
        "max_length": manifest.max_target_positions,
        "num_beams": search.beam_size,
        "length_penalty": search.length_penalty,
        "early_stopping": "never",
    }


def sentencepiece_models(
    checkpoint: Checkpoint, files: TokenizerFiles
) -> tuple[PieceModel, PieceModel] | None:
    """The SentencePiece files of source and target; None, and a problem, where text needs more."""
    source, target = checkpoint.tokenizer.models
    if isinstance(source, PieceModel) and isinstance(target, PieceModel):
        return source, target
    rules = checkpoint.manifest.normalisation
    files.problems.append(
        "the tokenizer is not SentencePiece alone (only SentencePiece)"
        if rules is None
        else f"normalisation is {rules!r} (only what SentencePiece files do themselves)"
    )
    return None


def one_sentencepiece_model(checkpoint: Checkpoint, files: TokenizerFiles) -> PieceModel | None:
    """The file that is the source's and the target's; None, and a problem, where they are two."""
    models = sentencepiece_models(checkpoint, files)
    if models is None:
        return None
    if models[0].data != models[1].data:
        files.problems.append("source and target have a SentencePiece file each (only one)")
        return None
    return models[0]


def fairseq_problems(tokens: SpecialTokens) -> list[str]:
    """Special ids that are not fairseq's, which several tokenizers of transformers have fixed."""
    known = {"pad_id": 1, "eos_id": 2, "unk_id": 3, "start_id": 2}
    return [
        f"tokens.{name} is {getattr(tokens, name)} (only {index})"
        for name, index in known.items()
        if getattr(tokens, name) != index
    ]


def numbering_problems(checkpoint: Checkpoint, known: Mapping[int, str]) -> list[str]:
    """A problem where a piece of the checkpoint has another id than the tokenizer will give it.

    Args:
        checkpoint: Its pieces, tags among them.
        known: What the tokenizer of transformers has, by id.
    """
    tokenizer = checkpoint.tokenizer
    sides = {"source": tokenizer.source_pieces(), "target": tokenizer.target_pieces()}
    problems = []
    for side, pieces in sides.items():
        other = sorted(index for index, piece in pieces.items() if known.get(index) != piece)
        if other:
            problems.append(
                f"the {side} vocabulary has {len(other)} ids that the family's tokenizer gives to"
                f" other pieces, the first is {other[0]}"
            )
    return problems
