"""One sentence through the network: its pieces, its translation, every attention weight.

Owns what is looked at. The weights come from the network's plain path (`model.nn`); the translation
from the search that serves. Draws nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from model.checkpoint.weights import Checkpoint
from model.config import SearchConfig, SpecialTokens
from model.errors import DecodingError, InputError
from model.offline.translator import Translator
from model.text.drafts.segments import PreparedText
from model.text.languages.tags import LanguagePair
from model.text.pipeline import TextPipeline, without_surrogates

MAX_PIECES = 48
"""Pieces of a side that a picture can still show so that they can be read."""

Weights = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A token of one side.

    Attributes:
        token_id: Its id.
        text: SentencePiece's name for it, or that of a special token.
    """

    token_id: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedSentence:
    """Sentence with what the network made of it.

    Attributes:
        source: The sentence.
        translation: What it was translated to, or the target that was given.
        is_given: Whether the target was given.
        source_pieces: (S,) what the encoder reads, EOS included.
        read_pieces: (T,) what the decoder reads, from the start token on.
        written_pieces: (T,) what stands after each of them: the piece that row predicts.
        encoder: Per layer (H, S, S), rows attend to columns.
        decoder: Per layer (H, T, T).
        cross: Per layer (H, T, S).
    """

    source: str
    translation: str
    is_given: bool
    source_pieces: tuple[Piece, ...]
    read_pieces: tuple[Piece, ...]
    written_pieces: tuple[Piece, ...]
    encoder: tuple[Weights, ...]
    decoder: tuple[Weights, ...]
    cross: tuple[Weights, ...]


def explain_sentence(
    checkpoint: Checkpoint,
    pair: LanguagePair,
    sentence: str,
    *,
    target: str | None = None,
    search: SearchConfig | None = None,
) -> ExplainedSentence:
    """Run one sentence and keep everything.

    Args:
        checkpoint: Its float network runs.
        pair: One of its directions.
        sentence: What would be one segment of a text.
        target: What the decoder is made to write; None translates.
        search: For the translation; None for the defaults.

    Raises:
        InputError: The text is not one sentence, or a side has more than `MAX_PIECES` pieces.
        DecodingError: The network gave no finite score.
    """
    tokenizer, tokens = checkpoint.tokenizer, checkpoint.manifest.tokens
    prepared = TextPipeline(tokenizer, checkpoint.manifest.limits).prepare(sentence, pair)
    if len(prepared.segments) != 1 or len(prepared.network_segments) != 1:
        raise InputError(
            f"the text is {len(prepared.segments)} sentences, {len(prepared.network_segments)} of"
            " them with something to translate; pictures are made of one",
            value=len(prepared.network_segments),
            limit=1,
        )
    source_ids = prepared.network_segments[0].source_ids
    _check_length("sentence", len(source_ids))
    if target is None:
        target_ids, translation = _translated(checkpoint, prepared, search or SearchConfig())
    else:
        translation = without_surrogates(target)
        target_ids = tokenizer.encode_target(translation)
    whole_ids = [*tokenizer.target_prefix(pair), *target_ids]
    _check_length("target", len(whole_ids) - 1)
    maps = checkpoint.transformer.attention_maps(
        torch.tensor([source_ids]), torch.tensor([whole_ids[:-1]])
    )
    target_names = tokenizer.target_pieces()
    return ExplainedSentence(
        source=without_surrogates(sentence),
        translation=translation,
        is_given=target is not None,
        source_pieces=_named(source_ids, tokenizer.source_pieces(), tokens),
        read_pieces=_named(whole_ids[:-1], target_names, tokens),
        written_pieces=_named(whole_ids[1:], target_names, tokens),
        encoder=_arrays(maps.encoder),
        decoder=_arrays(maps.decoder),
        cross=_arrays(maps.cross),
    )


def _translated(
    checkpoint: Checkpoint, prepared: PreparedText, search: SearchConfig
) -> tuple[list[int], str]:
    """The best hypothesis as ids with EOS, and as text."""
    translator = Translator(checkpoint, max_rows=search.beam_size)
    (hypotheses,) = translator.search(translator.requests(prepared, prepared.pair, search))
    if not hypotheses:
        raise DecodingError("the network gave no finite score for the sentence")
    best = hypotheses[0]
    text = translator.pipeline.finish(prepared, [best]).text
    return [*best.token_ids, checkpoint.manifest.tokens.eos_id], text


def _check_length(side: str, num_pieces: int) -> None:
    if num_pieces > MAX_PIECES:
        raise InputError(
            f"the {side} has {num_pieces} pieces; pictures show {MAX_PIECES} at most",
            value=num_pieces,
            limit=MAX_PIECES,
        )


def _named(
    ids: Sequence[int], names: Mapping[int, str], tokens: SpecialTokens
) -> tuple[Piece, ...]:
    # The start token may be the padding token itself, as in Marian; here it starts.
    special = {tokens.unk_id: "<unk>", tokens.eos_id: "</s>", tokens.start_id: "<start>"}
    named = {**special, **names}
    return tuple(Piece(token_id=index, text=named.get(index, f"#{index}")) for index in ids)


def _arrays(maps: Sequence[torch.Tensor]) -> tuple[Weights, ...]:
    """(1, H, Q, K) of every layer → (H, Q, K)."""
    return tuple(weights[0].float().cpu().numpy() for weights in maps)
