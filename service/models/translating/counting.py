"""Limits of how many segments one request may have: those that are asked for, and those copied.

Owns both refusals. How many segments an engine takes is its own (`service.engine.client`); a copied
segment takes no place there, but is told, kept and answered like any other.
"""

from collections.abc import Sequence

from model.request import Hypothesis
from model.text.drafts.rounds import Draft
from service.errors import too_long
from service.models.requests.translation import SegmentTally
from service.models.translating.segment_search import SegmentSearch

MAX_COPIED_SEGMENTS = 10_000
"""Of a request: as many lines as the longest text has by default, a digit each."""

_COPIED = "copied"


def count_segments(
    drafts: Sequence[Draft[Hypothesis]], search: SegmentSearch, tally: SegmentTally
) -> None:
    """Count the segments of some texts of a request, of which there may be so many.

    Args:
        drafts: Of which nothing was asked yet.
        search: Where their segments are searched.
        tally: Of the request.

    Raises:
        RequestError: A 413: there are more.
    """
    num_asked = sum(len(draft.asked) for draft in drafts)
    limit = search.max_request_segments
    num_segments = search.counted(num_asked, tally)
    if num_segments > limit:
        raise too_long(
            f"the request has at least {num_segments} segments; the limit is {limit}",
            value=num_segments,
            limit=limit,
        )
    count_copied(sum(len(draft.pieces) for draft in drafts) - num_asked, tally)


def count_copied(number: int, tally: SegmentTally) -> None:
    """Count segments of a request that are copied, whatever route they take.

    Raises:
        RequestError: A 413: there are more than there may be.
    """
    num_copied = tally.add(_COPIED, number)
    if num_copied > MAX_COPIED_SEGMENTS:
        raise too_long(
            f"the request has at least {num_copied} segments that are copied and not translated,"
            f" such as numbers; the limit is {MAX_COPIED_SEGMENTS}",
            value=num_copied,
            limit=MAX_COPIED_SEGMENTS,
        )
