"""Priority classes of requests, by their options and their work.

Owns the measure of that work and its limit. What a class means is
`service.engine.worker.scheduler`. A request that names no class, or "interactive", is interactive
as long as its work is what one person reads; one of more work is bulk, whatever it names.
"""

from collections.abc import Sequence
from typing import Literal

Priority = Literal["interactive", "bulk"]

PRIORITIES: tuple[Priority, ...] = ("interactive", "bulk")

MAX_INTERACTIVE_WORK = 8192
"""Rows × tokens of the largest interactive request: a page of 5,000 characters at beam 4."""

_TOKENS_A_SEGMENT = 16
"""What a segment costs besides its own tokens: its translation may have so many in any case."""
_BYTES_A_TOKEN = 4


def work_of(lengths: Sequence[int], *, beam_size: int) -> int:
    """The work of segments of so many source tokens: rows × tokens."""
    return beam_size * (sum(lengths) + _TOKENS_A_SEGMENT * len(lengths))


def estimated_work(texts: Sequence[str], *, beam_size: int) -> int:
    """The least work that texts will be, while their segments are not known."""
    num_bytes = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return beam_size * (num_bytes // _BYTES_A_TOKEN + _TOKENS_A_SEGMENT * len(texts))


def priority_of(work: int, asked: Priority | None) -> Priority:
    """The class of a request, by its work and the class that it names, if any."""
    return "bulk" if asked == "bulk" or work > MAX_INTERACTIVE_WORK else "interactive"
