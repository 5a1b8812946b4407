"""Lexical tables learnt from aligned text by IBM model 1, for shortlists.

Owns the estimation: p(t | s) of target and source tokens by expectation-maximisation (Brown et al.
1993, section 4.1), over the distinct tokens of each pair of segments, with an empty source token
that explains what no other does. Pure; files and tokenizers are the caller's.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from model.errors import DataError
from model.shortlist import Ids, Shortlist

MAX_LINKS = 2**25
"""Links of a source token with a target token, in all segments together: four bytes each."""
_CHUNK = 2**21
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
    """Every source token of some segments with every target token of their translations.

    Attributes:
        pair: (L,) int64, source · num_targets + target; the source is `num_sources` for none. Once
            pairs are numbered, int32 numbers.
        begins: (G,) int64, where the links of each target token of each segment begin: those of one
            stand together.
    """

    pair: npt.NDArray[np.int64] | npt.NDArray[np.int32]
    begins: npt.NDArray[np.int64]


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
    kept = _distinct(segments, max_links)
    if not kept:
        raise DataError(f"there is no segment to learn from, or it has more than {max_links} links")
    links = partial(_links, num_sources=num_sources, num_targets=num_targets)
    pairs = np.empty(0, dtype=np.int64)
    for chunk in _chunks(kept):  # made again below: eight bytes a link are never there at once
        pairs = np.union1d(pairs, links(chunk).pair)
    chunks = [_numbered(links(chunk), pairs) for chunk in _chunks(kept)]
    probabilities = _estimate(chunks, pairs // num_targets, num_sources)
    offsets, ids = _best(pairs, probabilities, num_sources, num_targets, num_best)
    frequency = np.bincount(np.concatenate([targets for _, targets in kept]), minlength=num_targets)
    by_frequency = np.argsort(-frequency, kind="stable")[:num_frequent]
    always = np.sort(by_frequency[frequency[by_frequency] > 0]).astype(np.int32)
    shortlist = Shortlist(always=always, offsets=offsets, ids=ids, with_source=with_source)
    return LearntShortlist(shortlist=shortlist, num_segments=len(kept))


_Segment = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Distinct source and target tokens."""


def _distinct(
    segments: Iterable[tuple[Sequence[int], Sequence[int]]], max_links: int
) -> list[_Segment]:
    """Segments while there is room for their links."""
    kept: list[_Segment] = []
    num_links = 0
    for source_ids, target_ids in segments:
        if not (len(source_ids) and len(target_ids)):
            continue
        source, target = np.unique(source_ids), np.unique(target_ids)
        num_links += (len(source) + 1) * len(target)
        if num_links > max_links:
            break
        kept.append((source, target))
    return kept


def _chunks(segments: Sequence[_Segment]) -> Iterator[Sequence[_Segment]]:
    """Segments that have about `_CHUNK` links together."""
    first = num_links = 0
    for place, (source, target) in enumerate(segments, start=1):
        num_links += (len(source) + 1) * len(target)
        if num_links >= _CHUNK or place == len(segments):
            yield segments[first:place]
            first, num_links = place, 0


def _links(segments: Sequence[_Segment], num_sources: int, num_targets: int) -> _Links:
    sources = [np.append(source, num_sources) for source, _ in segments]
    targets = [target for _, target in segments]
    pairs = [
        (source[None, :] * num_targets + target[:, None]).ravel()
        for source, target in zip(sources, targets, strict=True)
    ]
    sizes = np.repeat([len(source) for source in sources], [len(target) for target in targets])
    return _Links(pair=np.concatenate(pairs), begins=np.cumsum(sizes) - sizes)


def _numbered(links: _Links, pairs: npt.NDArray[np.int64]) -> _Links:
    """The links with the places of their pairs among all pairs, in half the memory."""
    places = np.searchsorted(pairs, links.pair).astype(np.int32)
    return _Links(pair=places, begins=links.begins)


def _estimate(
    chunks: Sequence[_Links], source: npt.NDArray[np.int64], num_sources: int
) -> npt.NDArray[np.float64]:
    """p(target | source) of every pair.

    Args:
        chunks: The links, by the number of their pair.
        source: (P,) int64, of every pair.
        num_sources: Source tokens, without that which stands for none.
    """
    probability = np.ones(len(source))
    for _ in range(_ITERATIONS):
        counts = np.zeros(len(source))
        for chunk in chunks:
            share = probability[chunk.pair]
            sizes = np.diff(chunk.begins, append=len(share))
            share /= np.repeat(np.add.reduceat(share, chunk.begins), sizes)
            counts += np.bincount(chunk.pair, weights=share, minlength=len(source))
        totals = np.bincount(source, weights=counts, minlength=num_sources + 1)
        probability = counts / totals[source]
    return probability


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
