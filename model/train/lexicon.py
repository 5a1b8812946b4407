"""Lexical tables learnt from aligned text by IBM model 1, for shortlists.

Owns the estimation: p(t | s) of target and source tokens by expectation-maximisation (Brown et al.
1993, section 4.1), over the distinct tokens of each pair of segments, with an empty source token
that explains what no other does. Pure; files and tokenizers are the caller's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from model.errors import DataError
from model.shortlist import Ids, Shortlist

MAX_LINKS = 2**24
"""Pairs of tokens that may be linked in all segments together: each takes about 40 bytes."""
_ITERATIONS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntShortlist:
    """A shortlist, and what it was learnt from.

    Attributes:
        shortlist: The table.
        num_segments: Pairs of segments that were read: no more than have room.
    """

    shortlist: Shortlist
    num_segments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Links:
    """Every source token of a segment with every target token of its translation.

    Attributes:
        pair: (L,) int64, source · num_targets + target; the source is `num_sources` for none.
        begins: (G,) int64, where the links of each target token of each segment begin: those of one
            stand together.
        frequency: (num_targets,) int64, segments that have each target token.
        num_segments: Pairs of segments.
    """

    pair: npt.NDArray[np.int64]
    begins: npt.NDArray[np.int64]
    frequency: npt.NDArray[np.int64]
    num_segments: int


def learn_shortlist(
    segments: Iterable[tuple[Sequence[int], Sequence[int]]],
    *,
    num_sources: int,
    num_targets: int,
    num_frequent: int,
    num_best: int,
    with_source: bool = False,
    max_links: int = MAX_LINKS,
) -> LearntShortlist:
    """A shortlist of the likeliest target tokens of every source token.

    Args:
        segments: Source and target ids of aligned segments; read until `max_links` are reached.
        num_sources: Source tokens.
        num_targets: Target tokens.
        num_frequent: Target tokens that are always listed: those of most segments.
        num_best: Target tokens of each source token, at most.
        with_source: Whether source tokens are listed too.
        max_links: Links that are kept, which bounds memory.

    Raises:
        DataError: There is no segment.
    """
    links = _read_links(segments, num_sources, num_targets, max_links)
    pairs, probabilities = _estimate(links, num_sources, num_targets)
    offsets, ids = _best(pairs, probabilities, num_sources, num_targets, num_best)
    by_frequency = np.argsort(-links.frequency, kind="stable")[:num_frequent]
    always = np.sort(by_frequency[links.frequency[by_frequency] > 0]).astype(np.int32)
    shortlist = Shortlist(always=always, offsets=offsets, ids=ids, with_source=with_source)
    return LearntShortlist(shortlist=shortlist, num_segments=links.num_segments)


def _read_links(
    segments: Iterable[tuple[Sequence[int], Sequence[int]]],
    num_sources: int,
    num_targets: int,
    max_links: int,
) -> _Links:
    frequency = np.zeros(num_targets, dtype=np.int64)
    parts: list[npt.NDArray[np.int64]] = []
    sizes: list[npt.NDArray[np.int64]] = []
    num_links = num_segments = 0
    for source_ids, target_ids in segments:
        sources = np.append(np.unique(np.asarray(source_ids, dtype=np.int64)), num_sources)
        targets = np.unique(np.asarray(target_ids, dtype=np.int64))
        num_links += len(sources) * len(targets)
        if num_links > max_links:
            break
        parts.append((sources[None, :] * num_targets + targets[:, None]).ravel())
        sizes.append(np.full(len(targets), len(sources)))
        frequency[targets] += 1
        num_segments += 1
    if not num_segments:
        raise DataError(f"there is no segment to learn from, or it has more than {max_links} links")
    ends = np.cumsum(np.concatenate(sizes))
    begins = np.concatenate([[0], ends[:-1]])
    return _Links(
        pair=np.concatenate(parts), begins=begins, frequency=frequency, num_segments=num_segments
    )


def _estimate(
    links: _Links, num_sources: int, num_targets: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """All pairs that occur, ascending, and p(target | source) of each."""
    pairs, index = np.unique(links.pair, return_inverse=True)
    source = pairs // num_targets
    sizes = np.diff(links.begins, append=len(links.pair))
    probability = np.ones(len(pairs))
    for _ in range(_ITERATIONS):
        share = probability[index]
        share /= np.repeat(np.add.reduceat(share, links.begins), sizes)
        counts = np.bincount(index, weights=share, minlength=len(pairs))
        totals = np.bincount(source, weights=counts, minlength=num_sources + 1)
        probability = counts / totals[source]
    return pairs, probability


def _best(
    pairs: npt.NDArray[np.int64],
    probability: npt.NDArray[np.float64],
    num_sources: int,
    num_targets: int,
    num_best: int,
) -> tuple[Ids, Ids]:
    """Offsets and ids of a shortlist: of every source token the likeliest, ascending."""
    source, target = np.divmod(pairs, num_targets)
    by_rank = np.lexsort((target, -probability, source))
    counts = np.bincount(source, minlength=num_sources + 1)
    rank = np.empty(len(pairs), dtype=np.int64)
    rank[by_rank] = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_kept = (rank < num_best) & (source < num_sources)
    kept = np.bincount(source[is_kept], minlength=num_sources)
    offsets = np.concatenate([[0], np.cumsum(kept)])
    return offsets.astype(np.int32), target[is_kept].astype(np.int32)
