"""Lexical shortlists for tests: random ones, their oracle, and Marian's file written by hand."""

import struct
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from model.config import SpecialTokens
from model.request import DecodeRequest, Hypothesis
from model.shortlist import Shortlist, tokens_of_request
from support.reference_search import NextLogProbs, reference_search

_MAGIC = 0xF11A48D5013417F5


def shortlist_of(
    lists: Sequence[Sequence[int]], *, always: Sequence[int] = (), with_source: bool = False
) -> Shortlist:
    """The table with these lists, one a source token."""
    return Shortlist(
        always=np.array(always, dtype=np.int32),
        offsets=np.cumsum([0, *map(len, lists)]).astype(np.int32),
        ids=np.array([token for tokens in lists for token in tokens], dtype=np.int32),
        with_source=with_source,
    )


def random_shortlist(
    num_sources: int, num_targets: int, *, num_best: int, with_source: bool = False, seed: int = 1
) -> Shortlist:
    """Lists of up to `num_best` tokens, some of them empty, in no order."""
    rng = np.random.default_rng(seed)
    lists = [
        rng.choice(num_targets, size=rng.integers(num_best + 1), replace=False).tolist()
        for _ in range(num_sources)
    ]
    return shortlist_of(lists, always=(2, 5), with_source=with_source)


def over_list(
    next_log_probs: NextLogProbs,
    shortlist: Shortlist,
    request: DecodeRequest,
    tokens: SpecialTokens,
) -> NextLogProbs:
    """The same numbers over the list of a request alone: all else impossible, and the sum one."""

    def restricted(source: list[int], prefix: list[int]) -> list[float]:
        log_probs = np.array(next_log_probs(source, prefix), dtype=np.float64)
        listed = tokens_of_request(shortlist, request, tokens, vocab_size=len(log_probs))
        inside = np.full_like(log_probs, -np.inf)
        inside[listed] = log_probs[listed] - np.logaddexp.reduce(log_probs[listed])
        found: list[float] = inside.tolist()
        return found

    return restricted


def lex_bytes(lists: Sequence[Sequence[int]], *, first: int = 2, best: int | None = None) -> bytes:
    """Marian's binary shortlist, its checksum made as its own program makes it."""
    offsets = np.cumsum([0, *map(len, lists)])
    ids = [token for tokens in lists for token in tokens]
    longest = max(map(len, lists), default=0)
    body = struct.pack("<4Q", first, longest if best is None else best, len(offsets), len(ids))
    body += struct.pack(f"<{len(offsets)}Q", *offsets) + struct.pack(f"<{len(ids)}I", *ids)
    return struct.pack("<2Q", _MAGIC, lex_checksum(body)) + body


def lex_checksum(body: bytes) -> int:
    """Of all that follows it, eight bytes at a time."""
    found = 0
    for (word,) in struct.iter_unpack("<Q", body[: len(body) // 8 * 8]):
        found ^= (word + 0x9E3779B9 + (found << 6) + (found >> 2)) % 2**64
    return found


def check_searches(
    crowd: Iterable[tuple[DecodeRequest, Sequence[Hypothesis]]],
    next_log_probs: NextLogProbs,
    shortlist: Shortlist,
    tokens: SpecialTokens,
    *,
    tolerance: float,
) -> None:
    """Every request's hypotheses are those of the plain search over its list alone."""
    for request, hypotheses in crowd:
        expected = reference_search(
            over_list(next_log_probs, shortlist, request, tokens),
            tokens,
            list(request.source_ids),
            list(request.prefix_ids),
            request.search,
            suppressed_ids=request.suppressed_ids,
            forced_ids=request.forced_ids,
            phrases=request.phrases,
        )
        assert [list(h.token_ids) for h in hypotheses] == [e.tokens for e in expected]
        for hypothesis, reference in zip(hypotheses, expected, strict=True):
            assert hypothesis.token_log_probs == pytest.approx(reference.log_probs, abs=tolerance)
            assert hypothesis.is_truncated == reference.is_truncated
