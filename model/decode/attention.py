"""Cross-attention of finished hypotheses, target × source, where a request asks for it.

Owns its bound and its form in a `Hypothesis`; the forced pass that recomputes it is the backend's
(`model.decode.forced_attention` where the network is PyTorch's). A search keeps of each token only
the source token that it attended to most; whole rows would have to be copied with beams, in tables
that every sentence pays for. So a search costs nothing for it, and a sentence that asks goes
through the decoder once more, alone.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from model.request import MAX_ATTENTION_WEIGHTS, DecodeRequest, FinishedSentence, Hypothesis

FloatArray = npt.NDArray[np.float32]

Attention = Callable[[DecodeRequest, Sequence[int]], FloatArray]
"""Weights (T, S) of a sentence's source while these target tokens were chosen, one by one."""


def fed_tokens(request: DecodeRequest, token_ids: Sequence[int]) -> list[int]:
    """What the decoder is fed while the tokens are chosen: the prefix, and all but the last."""
    return [*request.prefix_ids, *token_ids[:-1]]


def with_attention(
    sentence: FinishedSentence, request: DecodeRequest, attention: Attention
) -> FinishedSentence:
    """A finished sentence whose hypotheses have their attention, where that is within its bound."""

    def attended(found: Hypothesis) -> Hypothesis:
        num_weights = len(found.token_ids) * len(request.source_ids)
        if not 0 < num_weights <= MAX_ATTENTION_WEIGHTS:
            return found
        weights = attention(request, found.token_ids)
        return msgspec.structs.replace(found, attention=weights.astype("<f2").tobytes())

    return FinishedSentence(
        slot_id=sentence.slot_id, hypotheses=tuple(map(attended, sentence.hypotheses))
    )
