import pytest

from model.config import SearchConfig
from model.request import DecodeRequest
from service.engine.client.segment_room import SegmentRoom
from service.engine.client.submission import SegmentJob
from service.engine.errors import QueueFullError

JOB = SegmentJob(
    request=DecodeRequest(
        source_ids=(4, 5), prefix_ids=(1,), search=SearchConfig(beam_size=1, max_length=9)
    )
)


class _Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _leave(room: SegmentRoom, number: int, clock: _Clock, *, seconds_each: float) -> None:
    for _ in range(number):
        clock.now += seconds_each
        room.answered()
        room.leave(JOB)


def _fill(room: SegmentRoom) -> None:
    while room.num_taken < room.limit:
        room.take(JOB)


def _wait_seconds(room: SegmentRoom, num_segments: int) -> float:
    """What a request of so many segments is told where there is no room for it."""
    with pytest.raises(QueueFullError) as refused:
        room.check([JOB] * num_segments)
    assert refused.value.retry_after_seconds is not None
    return refused.value.retry_after_seconds


@pytest.mark.parametrize("idle_seconds", [0.0, 0.5, 3600.0])
def test_however_long_there_was_nothing_the_wait_is_by_the_pace_since(idle_seconds: float) -> None:
    clock = _Clock()
    room = SegmentRoom(400, clock=clock)
    _fill(room)
    _leave(room, 400, clock, seconds_each=0.1)
    clock.now += idle_seconds
    _fill(room)
    assert _wait_seconds(room, 100) == 1.0  # nothing is known yet
    _leave(room, 50, clock, seconds_each=0.1)
    assert _wait_seconds(room, 150) == pytest.approx(10.0)


def test_a_server_that_has_one_segment_now_and_then_tells_no_long_wait() -> None:
    clock = _Clock()
    room = SegmentRoom(400, clock=clock)
    for _ in range(300):
        clock.now += 60.0
        room.take(JOB)
        _leave(room, 1, clock, seconds_each=0.1)
    _fill(room)
    assert _wait_seconds(room, 1) == 1.0
    _leave(room, 10, clock, seconds_each=0.1)
    assert _wait_seconds(room, 15) == 1.0
    assert _wait_seconds(room, 40) == pytest.approx(3.0)


def test_as_long_as_one_is_pending_the_pace_of_those_before_holds() -> None:
    clock = _Clock()
    room = SegmentRoom(10, clock=clock)
    _fill(room)
    _leave(room, 9, clock, seconds_each=0.5)
    _fill(room)
    assert _wait_seconds(room, 4) == pytest.approx(2.0)
