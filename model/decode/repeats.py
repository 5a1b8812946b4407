"""Blocking of repeated n-grams: tokens that would complete one that the hypothesis has already.

Owns which tokens those are, over tensors, as masks of the vocabulary that stand between logits and
choice like those of `model.decode.constraints`. They exist only while a sentence that runs has such
a search, so any other pays nothing. It is the rule of Paulus et al. 2018 (section 2.5) and of
CTranslate2's `no_repeat_ngram_size`: what would end an n-gram that is there already is impossible,
and what is forced comes all the same. The same in C++ is `native/src/repeats.h`.
"""

import torch
from torch import Tensor


def repeat_mask(
    tokens: Tensor, starts: Tensor, ends: Tensor, sizes: Tensor, *, max_size: int, vocab_size: int
) -> Tensor:
    """Where a row would repeat itself: (R, V) bool.

    Nothing depends on values on the host, so that a step with it can be recorded.

    Args:
        tokens: (R, T) int64, what each row was fed, by position.
        starts: (R,) int64, the position of the first token that counts: the prefix does not.
        ends: (R,) int64, the position behind the last one.
        sizes: (R,) int64, n of each row; 0 where it may repeat itself.
        max_size: The largest of them, or more.
        vocab_size: Target tokens, V.
    """
    starts, ends, sizes = (own.unsqueeze(1) for own in (starts, ends, sizes))
    place = torch.arange(tokens.shape[1], device=tokens.device)
    # Whether the n − 1 tokens before a place are the last n − 1: then what stands there is next.
    is_next = (sizes > 0) & (place >= starts + sizes - 1) & (place < ends)
    for back in range(1, max_size):
        last = tokens.gather(1, (ends - back).clamp(min=0, max=tokens.shape[1] - 1))
        is_next &= (tokens.roll(back, dims=1) == last) | (sizes <= back)
    nowhere = torch.full_like(tokens, vocab_size)
    mask = torch.zeros(len(tokens), vocab_size + 1, dtype=torch.bool, device=tokens.device)
    mask.scatter_(1, torch.where(is_next, tokens, nowhere), value=True)
    return mask[:, :vocab_size]


def united(mask: Tensor | None, other: Tensor | None) -> Tensor | None:
    """What either of two masks has; None where there is neither."""
    if mask is None or other is None:
        return other if mask is None else mask
    return mask | other


def paths(ancestors: Tensor, nodes: Tensor) -> Tensor:
    """What each row of a tree of nodes was fed, by position: (S, K, T) int64, 0 where nothing yet.

    Args:
        ancestors: (S, K, T, K) bool, the nodes that each row continues, one a position.
        nodes: (S, T, K) int64, what each node was fed.
    """
    return (ancestors * nodes.unsqueeze(1)).sum(dim=3)
