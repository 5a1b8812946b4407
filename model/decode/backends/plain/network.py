"""The plain network over the whole targets of running sentences: logits of every next token.

Owns how beams of different lengths are padded and how many go through the decoder at once.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from model.decode.backends.plain.sentence import RunningSentence
from model.nn.masks import lengths_mask
from model.nn.transformer import Transformer

_MAX_ROWS_AT_ONCE = 32
"""Rows that go through the decoder together: attention weights take memory by rows · T²."""


def next_logits(
    transformer: Transformer, sentences: Sequence[RunningSentence]
) -> tuple[Tensor, Tensor]:
    """Run the decoder over everything so far.

    Returns:
        (R, V) logits of the next token, and (R,) int64, the source position that each row
        attended to most in the last layer; zeros if no sentence asks for alignments.
    """
    device = sentences[0].encoded.device
    widths = _ids([sentence.search.beam_size for sentence in sentences], device)
    lengths = _ids([sentence.length for sentence in sentences], device)
    source_lengths = _ids([len(sentence.encoded) for sentence in sentences], device)
    is_real = lengths_mask(lengths, int(lengths.max())).repeat_interleave(widths, dim=0)
    targets = torch.full_like(is_real, transformer.config.pad_id, dtype=torch.int64)
    targets[is_real] = torch.cat([sentence.tokens.flatten() for sentence in sentences])
    encoded = pad_sequence([sentence.encoded for sentence in sentences], batch_first=True)
    source_mask = lengths_mask(source_lengths, int(source_lengths.max()))
    owners = torch.arange(len(sentences), device=device).repeat_interleave(widths)
    with_alignment = any(sentence.search.with_alignment for sentence in sentences)
    hidden, sources = [], []
    for start in range(0, len(targets), _MAX_ROWS_AT_ONCE):
        rows = slice(start, start + _MAX_ROWS_AT_ONCE)
        own_hidden, own_sources = _last_position(
            transformer,
            targets[rows],
            lengths[owners[rows]] - 1,
            encoded[owners[rows]],
            source_mask[owners[rows]],
            with_alignment=with_alignment,
        )
        hidden.append(own_hidden)
        sources.append(own_sources)
    return transformer.project(torch.cat(hidden)), torch.cat(sources)


def _last_position(
    transformer: Transformer,
    targets: Tensor,
    last: Tensor,
    encoded: Tensor,
    source_mask: Tensor,
    *,
    with_alignment: bool,
) -> tuple[Tensor, Tensor]:
    """(R, T), (R,), (R, S, D), (R, S) → decoder output (R, D), most attended source (R,)."""
    maps: list[Tensor] | None = [] if with_alignment else None
    hidden = transformer.decoder(
        transformer.embed_target(targets), encoded, source_mask, cross_maps=maps
    )
    rows = torch.arange(len(targets), device=targets.device)
    if not maps:
        return hidden[rows, last], torch.zeros_like(last)
    return hidden[rows, last], maps[-1][rows, :, last].mean(dim=1).argmax(dim=-1)


def _ids(values: Sequence[int], device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=torch.int64, device=device)
