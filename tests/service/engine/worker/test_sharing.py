"""The real order of turns, among lanes that only count, under a virtual clock."""

from dataclasses import dataclass, field

import pytest

from service.engine.worker.sharing import BULK_SHARE, INTERACTIVE_SHARE, LaneTurns


@dataclass(slots=True)
class Lane:
    """A lane whose turns all take as long; `num_left` of them are still to be taken."""

    seconds: float
    num_left: int
    share: float = INTERACTIVE_SHARE
    used: float = 0.0
    ended: float = -1.0


@dataclass(slots=True)
class Loop:
    """An engine's loop over such lanes."""

    lanes: list[Lane]
    turns: LaneTurns = field(init=False)
    now: float = 0.0
    order: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.turns = LaneTurns(len(self.lanes))

    def run(self, *, until: float) -> None:
        """Take turns until then, or until nothing is left to do."""
        while self.now < until:
            number = self.turns.next(n for n, lane in enumerate(self.lanes) if lane.num_left)
            if number is None:
                return
            lane = self.lanes[number]
            self.now += lane.seconds
            lane.used += lane.seconds
            lane.num_left -= 1
            self.turns.charge(number, lane.seconds, share=lane.share)
            self.order.append(number)
            if not lane.num_left:
                lane.ended = self.now


FLOOD = 10**6


@pytest.mark.parametrize("arrives", [0.0, 3.0, 50.0])
@pytest.mark.parametrize(("slow", "quick"), [(0.1, 0.001), (0.001, 0.001), (0.1, 0.07)])
def test_a_sentence_beside_another_models_flood_takes_twice_its_time_and_one_turn(
    slow: float, quick: float, arrives: float
) -> None:
    loop = Loop([Lane(slow, FLOOD), Lane(quick, 0)])
    loop.run(until=arrives)
    arrived, num_steps = loop.now, 30
    loop.lanes[1].num_left = num_steps
    loop.run(until=arrived + 100 * slow * num_steps)
    alone = num_steps * quick
    assert alone - 1e-9 <= loop.lanes[1].ended - arrived <= 2 * alone + 2 * slow + 1e-9


def test_beside_floods_of_several_models_it_waits_for_a_share_of_each() -> None:
    floods = [Lane(seconds, FLOOD) for seconds in (0.05, 0.02, 0.01)]
    loop = Loop([*floods, Lane(0.002, 0)])
    loop.run(until=5.0)
    arrived = loop.now
    loop.lanes[3].num_left = 40
    loop.run(until=20.0)
    turns = sum(lane.seconds for lane in floods)
    assert loop.lanes[3].ended - arrived <= 4 * 40 * 0.002 + 2 * turns


@pytest.mark.parametrize("seconds", [(0.1, 0.001), (0.01, 0.01), (0.001, 0.1)])
def test_two_floods_have_half_of_the_time_each_whatever_their_steps_cost(
    seconds: tuple[float, float],
) -> None:
    loop = Loop([Lane(each, FLOOD) for each in seconds])
    loop.run(until=20.0)
    assert abs(loop.lanes[0].used - loop.lanes[1].used) <= max(seconds) + 1e-9


def test_a_model_with_bulk_alone_leaves_four_fifths_and_keeps_its_part() -> None:
    loop = Loop([Lane(0.03, FLOOD, share=BULK_SHARE), Lane(0.002, FLOOD)])
    loop.run(until=20.0)
    assert loop.lanes[0].used == pytest.approx(4.0, abs=0.1)
    assert loop.lanes[1].used == pytest.approx(16.0, abs=0.1)


def test_a_model_that_was_idle_has_no_claim_to_the_past() -> None:
    loop = Loop([Lane(0.01, FLOOD), Lane(0.01, 0)])
    loop.run(until=10.0)
    loop.lanes[1].num_left = FLOOD
    used = loop.lanes[0].used
    loop.run(until=12.0)
    assert loop.lanes[0].used - used == pytest.approx(1.0, abs=0.02)


def test_a_model_that_comes_and_goes_gains_nothing_by_it() -> None:
    loop = Loop([Lane(0.01, FLOOD), Lane(0.05, 0)])
    for _ in range(200):
        loop.lanes[1].num_left = 1
        loop.run(until=loop.now + 0.1)
    assert loop.lanes[1].used <= 0.5 * loop.now + 0.05


def test_turns_that_take_no_time_go_round() -> None:
    loop = Loop([Lane(0.0, 4), Lane(0.0, 4), Lane(0.0, 4)])
    loop.run(until=1.0)
    assert loop.order == [0, 1, 2] * 4


def test_where_nothing_is_to_be_done_nobody_has_a_turn() -> None:
    assert LaneTurns(2).next([]) is None
