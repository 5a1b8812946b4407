import pytest

from service.engine.client.watchdog import Watchdog, WatchedTime
from service.engine.messages import EngineCounters


def watch(seconds: float = 8.0) -> Watchdog:
    return Watchdog(hang_seconds=seconds, now=100.0)


def pass_time(watchdog: Watchdog, start: float, seconds: int, *, has_work: bool) -> list[bool]:
    """Ask once a second."""
    return [
        watchdog.is_hung(now=start + second, has_work=has_work) for second in range(1, seconds + 1)
    ]


def test_silence_is_a_hang_whether_there_is_work_or_not():
    for has_work in (False, True):
        assert pass_time(watch(), 100.0, 8, has_work=has_work) == [False] * 7 + [True]


def test_a_sign_of_life_ends_the_silence():
    watchdog = watch()
    pass_time(watchdog, 100.0, 7, has_work=False)
    watchdog.observe(EngineCounters())
    assert pass_time(watchdog, 107.0, 8, has_work=False) == [False] * 7 + [True]


def test_life_without_progress_is_a_hang_only_while_there_is_work():
    for has_work in (False, True):
        watchdog = watch()
        watchdog.observe(EngineCounters(num_steps=5))
        found = []
        for second in range(1, 12):
            watchdog.observe(EngineCounters(num_steps=5))
            found += pass_time(watchdog, 99.0 + second, 1, has_work=has_work)
        assert any(found) == has_work


def test_a_moving_step_count_is_progress():
    watchdog = watch()
    for second in range(1, 50):
        watchdog.observe(EngineCounters(num_steps=second))
        assert not watchdog.is_hung(now=100.0 + second, has_work=True)


def test_time_in_which_nobody_watched_does_not_count():
    watchdog = watch()
    assert not watchdog.is_hung(now=5000.0, has_work=True)  # the front itself was suspended
    watchdog.observe(EngineCounters(num_steps=1))
    assert not watchdog.is_hung(now=5001.0, has_work=True)
    assert repr(watchdog) == "<Watchdog silent=1.0 stuck=1.0>"


@pytest.mark.parametrize(
    "name", ["num_steps", "num_admissions", "num_finished", "num_cancelled", "num_failed"]
)
def test_each_kind_of_progress_is_progress(name: str):
    watchdog = watch()
    for second in range(1, 30):
        watchdog.observe(EngineCounters(**{name: second}))
        assert not watchdog.is_hung(now=100.0 + second, has_work=True)


def test_progress_of_long_ago_is_none():
    watchdog = watch()
    found = []
    for second in range(1, 10):
        watchdog.observe(EngineCounters(num_steps=1))
        found.append(watchdog.is_hung(now=100.0 + second, has_work=True))
    # The first ones were progress; eight seconds after them there has been no other.
    assert found == [False] * 7 + [True] * 2


def test_a_standstill_is_counted_from_when_there_was_work():
    watchdog = watch()
    found = []
    for second in range(1, 25):
        watchdog.observe(EngineCounters())
        found.append(watchdog.is_hung(now=100.0 + second, has_work=second > 5 and second != 12))
    # Six seconds of work, one without, and eight with it.
    assert found.index(True) + 1 == 12 + 8


def test_it_wants_to_be_asked_eight_times_and_counts_at_most_two_of_them_at_once():
    watchdog = watch(16.0)
    assert watchdog.interval_seconds == 2.0
    assert not watchdog.is_hung(now=103.0, has_work=False)
    assert repr(watchdog) == "<Watchdog silent=3.0 stuck=0.0>"
    assert not watchdog.is_hung(now=110.0, has_work=True)
    assert repr(watchdog) == "<Watchdog silent=7.0 stuck=4.0>"


def test_a_look_that_comes_late_counts_two_intervals_and_the_next_one_what_it_is():
    time = WatchedTime(interval_seconds=1.0, now=100.0)
    looks = (100.5, 102.0, 3700.0, 3700.5)
    assert [time.since_last_look(now=now) for now in looks] == [0.5, 1.5, 2.0, 0.5]
