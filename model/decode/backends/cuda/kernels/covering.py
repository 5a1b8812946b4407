"""Choice of the steps that Triton's programs search.

Owns the bounds of their search. It knows no Triton, so that the search in torch can ask.
"""

from model.decode.backends.cuda.buckets import Bucket

_MAX_WIDTH = 16
_MAX_CANDIDATES = 64
"""Searches that are larger do not fit into the registers of one program."""


def covers(bucket: Bucket, *, width: int) -> bool:
    """Whether the programs search a step: nothing stands between logits and choice.

    Args:
        bucket: The step's.
        width: Rows of a slot.
    """
    is_constrained = bucket.with_suppressed or bucket.with_sampling or bucket.num_phrase_tokens
    is_constrained = is_constrained or bucket.num_groups > 1 or bucket.no_repeat_ngram
    is_small = width <= _MAX_WIDTH and bucket.num_candidates <= _MAX_CANDIDATES
    return bucket.by_kernels and is_small and not is_constrained
