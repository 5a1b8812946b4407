"""Pulses: who hangs, and who only rests, by a clock of the test."""

from model.offline.bulk.pulses import Pulses


class _Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _looked(pulses: Pulses, clock: _Clock, until: float) -> list[tuple[float, int]]:
    """Who is seen to hang, and when, by somebody who looks every second."""
    found = []
    while clock.now < until:
        clock.now += 1.0
        found += [(clock.now, worker) for worker in pulses.hung()]
    return found


def test_whoever_has_work_and_does_no_step_for_the_limit_hangs() -> None:
    clock = _Clock()
    pulses = Pulses(10.0, clock)
    pulses.has_work(1)
    pulses.has_work(2)
    pulses.beat(1, 5)
    assert _looked(pulses, clock, 1009.0) == []
    pulses.beat(1, 6)
    pulses.beat(2, 0)  # it answers, and has done nothing
    assert _looked(pulses, clock, 1010.0) == [(1010.0, 2)]
    pulses.forget(2)
    assert _looked(pulses, clock, 1019.0) == [(1019.0, 1)]


def test_whoever_has_nothing_to_do_does_not_hang() -> None:
    clock = _Clock()
    pulses = Pulses(10.0, clock)
    pulses.has_work(1)
    pulses.forget(1)
    pulses.beat(1, 7)  # an answer that was on its way
    assert _looked(pulses, clock, 1100.0) == []
    assert list(pulses.watched) == []
    pulses.has_work(1)
    assert _looked(pulses, clock, 1109.0) == []


def test_a_driver_that_was_stopped_itself_takes_nobody_for_hung() -> None:
    clock = _Clock()
    pulses = Pulses(10.0, clock)
    pulses.has_work(1)
    clock.now += 3600.0
    assert pulses.hung() == []
    assert _looked(pulses, clock, 4609.0) == []
    assert _looked(pulses, clock, 4610.0) == [(4610.0, 1)]


def test_without_a_limit_nobody_hangs() -> None:
    clock = _Clock()
    pulses = Pulses(0.0, clock)
    pulses.has_work(1)
    assert _looked(pulses, clock, 2000.0) == []
