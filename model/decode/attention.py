"""Cross-attention of finished hypotheses, target × source, where a request asks for it.

Owns its bound and its form in a `Hypothesis`; the forced pass that recomputes it is the backend's
(`model.decode.forced_attention` where the network is PyTorch's). A search keeps of each token only
the source token that it attended to most; whole rows would have to be copied with beams, in tables
that every sentence pays for. So a search costs nothing for it, and a sentence that asks goes
through the decoder once more, alone: all its hypotheses side by side.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from model.request import MAX_ATTENTION_WEIGHTS, DecodeRequest, FinishedSentence, Hypothesis

FloatArray = npt.NDArray[np.float32]

Attention = Callable[[DecodeRequest, Sequence[Sequence[int]]], list[FloatArray]]
"""Weights (T, S) of a sentence's source while the target tokens of hypotheses were chosen."""


def fed_tokens(request: DecodeRequest, token_ids: Sequence[int]) -> list[int]:
    """What the decoder is fed while the tokens are chosen: the prefix, and all but the last."""
    return [*request.prefix_ids, *token_ids[:-1]]


def with_attention(
    sentence: FinishedSentence, request: DecodeRequest, attention: Attention
) -> FinishedSentence:
    """A finished sentence whose hypotheses have their attention, where that is within its bound."""

    def is_told(found: Hypothesis) -> bool:
        return 0 < len(found.token_ids) * len(request.source_ids) <= MAX_ATTENTION_WEIGHTS

    told = [found.token_ids for found in sentence.hypotheses if is_told(found)]
    weights = iter(attention(request, told) if told else ())
    hypotheses = (
        msgspec.structs.replace(found, attention=next(weights).astype("<f2").tobytes())
        if is_told(found)
        else found
        for found in sentence.hypotheses
    )
    return FinishedSentence(slot_id=sentence.slot_id, hypotheses=tuple(hypotheses))
