"""Sizes of a grid's steps: buckets, and how sizes are rounded so that there are few of them.

Owns what a recorded step is for. How large tables are is `model.decode.backends.cuda.tables`; which
bucket a step takes is `model.decode.backends.cuda.grid`.
"""

from dataclasses import dataclass

from model.decode.beam_search import CHUNK


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Part of the tables that a step covers; a recorded step is for one of these.

    Attributes:
        num_slots: Slots, from the first.
        num_columns: Positions of the past, T, from the first.
        source_length: Source positions, M.
        num_candidates: Continuations a sentence considers at most, C.
        with_sources: Also say which source position each row attended to most.
        with_suppressed: Some sentence has tokens that it may not choose.
        with_sampling: Some sentence is drawn.
        num_phrase_tokens: Of all phrases of a sentence, at most; 0: no sentence has any.
        num_groups: That the beams of a sentence are divided into, at most; 1: none are.
        no_repeat_ngram: The longest that comes in no hypothesis of a sentence twice, or more; 0:
            all may come again.
        by_kernels: What Triton's programs cover they do; torch's operators do all else.
    """

    num_slots: int
    num_columns: int
    source_length: int
    num_candidates: int
    with_sources: bool
    with_suppressed: bool
    with_sampling: bool
    num_phrase_tokens: int
    num_groups: int
    no_repeat_ngram: int
    by_kernels: bool


def padded_vocabulary(size: int) -> int:
    """Columns of a grid's logits: whole chunks of `model.decode.beam_search.wide_topk`."""
    return -(-size // CHUNK) * CHUNK


def rounded_up(value: int, *, minimum: int, maximum: int) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, 16, 24, … so that few buckets waste little."""
    size = max(value, minimum)
    power = 1 << (size - 1).bit_length()
    return min(power * 3 // 4 if size <= power * 3 // 4 else power, maximum)
