"""Constraints on a sentence's tokens, between a step's logits and the choice among them.

Owns what `DecodeRequest.suppressed_ids` and a lexical shortlist are to a search over tensors: masks
of the vocabulary; and which token is forced at a step. The first mask exists only while a sentence
that runs has such ids, the second only with a shortlist, so a search without them pays nothing.
What is suppressed keeps its probability; what is outside a list has none. No work is saved here:
the int8 kernels multiply by a list alone. How a token is forced on a row is
`model.decode.beam_search.force`, what a hypothesis has to contain is `model.decode.lexical`; the
int8 kernels have masks and forced tokens of their own (`src/session.h`, `src/search.h`).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from model.config import SpecialTokens
from model.request import DecodeRequest


def forced_token(request: DecodeRequest, tokens: SpecialTokens, num_generated: int) -> int | None:
    """The only token that a sentence may add; None where it is free.

    Its prefix leaves no choice, nor does a forced first token, nor what its translation has to
    begin with, nor the cap; none of that costs anything.

    Args:
        request: The sentence.
        tokens: The vocabulary's special tokens.
        num_generated: Tokens chosen so far; negative within the prefix.
    """
    if num_generated < 0:
        return request.prefix_ids[num_generated]
    if num_generated == request.search.max_length - 1:
        return tokens.eos_id
    if num_generated == 0 and tokens.forced_first_id is not None:
        return tokens.forced_first_id
    place = num_generated - (tokens.forced_first_id is not None)
    return request.forced_ids[place] if place < len(request.forced_ids) else None


def suppressed_mask(
    suppressed_ids: Sequence[Sequence[int]], *, vocab_size: int, device: torch.device
) -> Tensor:
    """Where a row may not go on: (R, V) bool.

    Args:
        suppressed_ids: Of every row, R of them.
        vocab_size: Target tokens, V.
        device: Where the mask is needed.
    """
    mask = torch.zeros(len(suppressed_ids), vocab_size, dtype=torch.bool)
    for row, tokens in enumerate(suppressed_ids):
        mask[row, list(tokens)] = True
    return mask.to(device)


def suppress(log_probs: Tensor, mask: Tensor) -> None:
    """Make tokens impossible in place; their probability mass stays theirs.

    Args:
        log_probs: (R, V).
        mask: (R, V) bool, True where a row may not go on.
    """
    log_probs.masked_fill_(mask, float("-inf"))


def outside_mask(allowed: Sequence[npt.NDArray[np.int64]], *, vocab_size: int) -> Tensor:
    """What is outside the list of each row: (R, V) bool on the CPU.

    Args:
        allowed: Of every row, R of them, the tokens of its list (`model.shortlist`).
        vocab_size: Target tokens.
    """
    mask = torch.ones(len(allowed), vocab_size, dtype=torch.bool)
    for row, tokens in enumerate(allowed):
        mask[row, torch.from_numpy(tokens)] = False
    return mask


def restrict(logits: Tensor, outside: Tensor | None) -> Tensor:
    """Logits of lists only, so that probabilities sum to one over each row's list.

    Args:
        logits: (R, V).
        outside: (R, V) bool, True where a token is not in the row's list; None: no lists.
    """
    return logits if outside is None else logits.masked_fill(outside, float("-inf"))
