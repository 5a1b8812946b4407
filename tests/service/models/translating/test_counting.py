"""How many segments a request may have, over texts of which nothing was asked yet."""

import pytest

from model.request import Hypothesis
from model.text.drafts.rounds import Draft, started
from model.text.drafts.segments import PreparedText, Segment
from service.errors import RequestError
from service.models.requests.translation import SegmentTally
from service.models.translating.counting import (
    MAX_COPIED_SEGMENTS,
    count_copied,
    count_segments,
)
from service.models.translating.segment_search import SegmentSearch
from support.online_translation import Echo
from support.tiny_checkpoint import EN_ZH


def _text(*, num_asked: int = 0, num_copied: int = 0) -> Draft[Hypothesis]:
    segments = (
        *(Segment(text="a", source_ids=(7,)),) * num_asked,
        *(Segment(text="7", source_ids=()),) * num_copied,
    )
    separators = ("",) * (len(segments) + 1)
    return started(PreparedText(pair=EN_ZH, segments=segments, separators=separators))


def test_each_kind_has_a_limit_of_its_own() -> None:
    search = SegmentSearch(Echo())
    full = _text(num_asked=Echo.max_request_segments, num_copied=MAX_COPIED_SEGMENTS)
    for one, limit in (({"num_asked": 1}, 8), ({"num_copied": 1}, MAX_COPIED_SEGMENTS)):
        tally = SegmentTally()
        count_segments([full], search, tally)
        with pytest.raises(RequestError) as caught:
            count_segments([_text(**one)], search, tally)
        problem = caught.value.problem
        assert (problem.status, problem.code) == (413, "too_long")
        assert (problem.value, problem.limit) == (limit + 1, limit)
        assert str(limit) in problem.message


def test_what_is_copied_counts_together_whatever_engine_the_others_are_for() -> None:
    tally = SegmentTally()
    count_segments([_text(num_copied=MAX_COPIED_SEGMENTS - 1)], SegmentSearch(Echo()), tally)
    count_copied(1, tally)
    with pytest.raises(RequestError, match="10001 segments that are copied"):
        count_segments([_text(num_copied=1)], SegmentSearch(Echo()), tally)
