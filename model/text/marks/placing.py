"""Places of loose marks in a translation: where its alignment puts the words around them.

Owns which marks stand in which order, and before which target token. The marks divide the source
into regions, and so they divide the translation, in the same order, with one exception: inline
codes that belong to each other, with all that is between them, are an element. What stands before
and behind an element is one text, in which it may stand anywhere; and elements side by side change
places if their words have. So what is inside of an element stays inside of it, and nothing else
comes in. Where in the characters of the translation a mark stands is `model.text.marks.carrying`.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from model.text.marks.inline_codes import partners

_GAIN = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedMark:
    """A mark's place.

    Attributes:
        index: Which mark.
        num_tokens: Target tokens before it.
    """

    index: int
    num_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Element:
    """Two marks that belong to each other, by their indices, and what is between them."""

    opening: int
    closing: int
    inner: "tuple[_Element | int, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Region:
    """Region between two marks.

    Attributes:
        owner: The element that it is directly in, and the last mark there that stays.
        mark: The mark before it.
    """

    owner: tuple[int, int]
    mark: int


_Item = _Element | int
"""An element, or a mark that stays where it is between its neighbours."""


def placed_marks(
    marks: Sequence[str], sources: Sequence[int], alignment: Sequence[int]
) -> list[PlacedMark]:
    """The marks in the order in which they stand in the translation.

    Of all divisions of the translation the one is chosen in which the fewest tokens attended to
    what is not in the same element, or not between the same marks that stay; of equals that with
    the most tokens between the marks that they were between. Elements change places only if fewer
    tokens are wrong then.

    Args:
        marks: In the order of the source.
        sources: For every mark the number of source tokens before it.
        alignment: For every target token a source token.
    """
    own = [bisect_right(sources, token) for token in alignment]
    pairs = partners(marks)
    kept = range(len(marks))
    regions = _regions(kept, pairs)
    tokens = [regions[region] for region in own]
    cost, begins = _divided(tokens, regions)
    order = list(_ordered(_items(0, len(marks), pairs), own))
    if order != list(kept):
        other_cost, other_begins = _divided(tokens, _regions(order, pairs))
        if other_cost + 0.5 < cost:
            return _placed(order, other_begins)
    return _placed(kept, begins)


def _placed(order: Sequence[int], begins: Sequence[int]) -> list[PlacedMark]:
    return [
        PlacedMark(index=index, num_tokens=begin)
        for index, begin in zip(order, begins, strict=True)
    ]


def _items(start: int, end: int, pairs: dict[int, int]) -> tuple[_Item, ...]:
    """The marks from one index to another, elements as such."""
    items: list[_Item] = []
    while start < end:
        closing = pairs.get(start)
        if closing is None:
            items.append(start)
        else:
            inner = _items(start + 1, closing, pairs)
            items.append(_Element(opening=start, closing=closing, inner=inner))
        start = (start if closing is None else closing) + 1
    return tuple(items)


def _ordered(items: Sequence[_Item], own: Sequence[int]) -> Iterator[int]:
    """Indices of marks, elements that stand side by side in the order of their translations."""
    neighbours: list[tuple[float, _Element]] = []
    key = -1.0
    for item in items:
        if isinstance(item, _Element):
            places = [p for p, region in enumerate(own) if item.opening < region <= item.closing]
            key = median(places) if places else key
            neighbours.append((key, item))
        else:
            yield from _in_order(neighbours, own)
            yield item
            neighbours, key = [], -1.0
    yield from _in_order(neighbours, own)


def _in_order(neighbours: Sequence[tuple[float, _Element]], own: Sequence[int]) -> Iterator[int]:
    for _, element in sorted(neighbours, key=lambda one: one[0]):
        yield element.opening
        yield from _ordered(element.inner, own)
        yield element.closing


def _regions(order: Sequence[int], pairs: dict[int, int]) -> list[_Region]:
    """The regions between marks in some order."""
    opened: list[tuple[int, int]] = [(-1, -1)]
    regions = [_Region(owner=opened[-1], mark=-1)]
    for index in order:
        partner = pairs.get(index)
        if partner is None:
            opened[-1] = (opened[-1][0], index)
        elif partner > index:
            opened.append((index, -1))
        else:
            opened.pop()
        regions.append(_Region(owner=opened[-1], mark=index))
    return regions


def _divided(tokens: Sequence[_Region], regions: Sequence[_Region]) -> tuple[float, list[int]]:
    """The best division of tokens into regions in their order.

    Args:
        tokens: The region of the source that each belongs to.
        regions: Those of the translation.

    Returns:
        The tokens that are not where they belong, less a little for those between marks that are;
        and where each region after the first begins.
    """
    costs = [0.0] + [math.inf] * (len(regions) - 1)
    froms: list[list[int]] = []
    for own in tokens:
        froms.append(_nearest_best(costs))
        costs = [costs[best] + _cost(own, regions, region) for region, best in enumerate(froms[-1])]
    region = _nearest_best(costs)[-1]
    cost = costs[region]
    begins = [len(tokens)] * len(regions)
    for place in range(len(tokens) - 1, -1, -1):
        begins[region] = place
        region = froms[place][region]
    for region in range(len(regions) - 2, -1, -1):
        begins[region] = min(begins[region], begins[region + 1])
    return cost, begins[1:]


def _cost(own: _Region, regions: Sequence[_Region], region: int) -> float:
    """What a token in a region costs: 1 if it is wrong there; between marks a little says more."""
    here, is_inner = regions[region], 0 < region < len(regions) - 1
    if here.owner != own.owner:
        return 1.0 + _GAIN * is_inner
    return -_GAIN * (1 + is_inner) * (here.mark == own.mark)


def _nearest_best(costs: Sequence[float]) -> list[int]:
    """For every region the best one up to it, the last of equals."""
    best, bests = 0, []
    for region, cost in enumerate(costs):
        best = region if cost <= costs[best] else best
        bests.append(best)
    return bests
