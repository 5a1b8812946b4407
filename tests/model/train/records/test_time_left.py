from collections.abc import Iterator
from dataclasses import replace

import pytest

from model.train.config.run import RunConfig
from model.train.records.time_left import TimeLeft
from model.train.saved.state import Progress

RUN = RunConfig(max_updates=100, snapshot_every_updates=30, save_every_minutes=1e9)
BEGIN = Progress()
TEN = Progress(update=10, elapsed_seconds=20.0)  # of a hundred updates, two seconds each


def time_left(
    run: RunConfig = RUN, *, begin: Progress = BEGIN, fraction: float = 0.0, times: str = ""
) -> TimeLeft:
    """With a clock that tells these times."""
    clock: Iterator[float] = iter(map(float, times.split()))
    return TimeLeft(run, progress=begin, fraction=fraction, clock=lambda: next(clock))


def test_before_anything_was_measured_only_updates_take_time() -> None:
    assert time_left().seconds(BEGIN, 0.0) == 0.0
    assert time_left().seconds(TEN, 0.1) == 180.0
    assert time_left().seconds_to_evaluation(BEGIN) == 0.0
    assert time_left().seconds_to_evaluation(TEN) == 40.0


@pytest.mark.parametrize(
    ("progress", "num_evaluations"),
    [
        (TEN, 4),  # at 30, 60, 90 and the end
        (replace(TEN, update=30, elapsed_seconds=60.0), 4),  # the one that is due among them
        (replace(TEN, update=30, elapsed_seconds=60.0, scored_update=30), 3),
        (replace(TEN, update=89, elapsed_seconds=178.0), 2),
        (replace(TEN, update=100, elapsed_seconds=200.0), 1),
    ],
)
def test_evaluations_that_are_still_to_come_take_what_the_last_one_took(
    progress: Progress, num_evaluations: int
) -> None:
    estimate = time_left(times="0 100 200 207")
    for _ in range(2):
        with estimate.evaluating():
            pass
    training = 2.0 * (100 - progress.update)
    found = estimate.seconds(progress, progress.update / 100)
    assert found == pytest.approx(training + 7.0 * num_evaluations)


@pytest.mark.parametrize(
    ("run", "num_saves"),
    [
        (RUN, 1),  # at the end
        (replace(RUN, save_every_updates=40), 3),
        (replace(RUN, save_every_minutes=1.0), 4),  # thirty updates
        (replace(RUN, save_every_minutes=1.0, save_every_updates=20), 5),
        (replace(RUN, save_every_minutes=1e-6), 91),
    ],
)
def test_saves_that_are_still_to_come_take_time_too(run: RunConfig, num_saves: int) -> None:
    estimate = time_left(run, times="5 8")
    with estimate.saving():
        pass
    assert estimate.seconds(TEN, 0.1) == pytest.approx(180.0 + 3.0 * num_saves)


def test_a_run_with_a_limit_of_minutes_has_as_many_updates_left_as_time_for_them() -> None:
    begin = Progress(update=50, elapsed_seconds=300.0)
    estimate = time_left(begin=begin, fraction=0.5, times="0 9")
    with estimate.evaluating():
        pass
    progress = replace(begin, update=75, elapsed_seconds=450.0, scored_update=60)
    # 25 updates in a quarter of the run; at 90 and at the end, after update 100.
    assert estimate.seconds(progress, 0.75) == pytest.approx(150.0 + 2 * 9.0)


def test_what_did_not_come_to_its_end_is_not_measured() -> None:
    estimate = time_left(times="0 1 2 3")
    for part in (estimate.evaluating, estimate.saving):
        with pytest.raises(ValueError, match="stopped"), part():
            raise ValueError("stopped")
    assert estimate.seconds(TEN, 0.1) == 180.0
