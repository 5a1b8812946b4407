import asyncio
from math import floor

from hypothesis import given
from hypothesis import strategies as st

from service.access.windows import LocalWindows

EXPIRY = 60


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _hit(windows: LocalWindows, key: str = "a", *, limit: int = 10, amount: int = 1) -> bool:
    return asyncio.run(windows.acquire_sliding_window_entry(key, limit, EXPIRY, amount))


def test_a_limit_is_reached_and_fades() -> None:
    clock = Clock()
    windows = LocalWindows(clock)
    assert [_hit(windows) for _ in range(12)] == [True] * 10 + [False] * 2
    clock.now = 90.0  # half of the first window still counts
    assert [_hit(windows) for _ in range(7)] == [True] * 5 + [False] * 2
    clock.now = 120.0  # of the second window, five
    assert [_hit(windows) for _ in range(7)] == [True] * 5 + [False] * 2
    clock.now = 1000.0
    assert _hit(windows, amount=10)


def test_a_cost_is_spent_whole_or_not_at_all() -> None:
    windows = LocalWindows(Clock())
    assert [_hit(windows, amount=amount) for amount in (7, 4, 3, 1)] == [True, False, True, False]


def test_counters_are_apart() -> None:
    windows = LocalWindows(Clock())
    assert _hit(windows, "a", amount=10)
    assert _hit(windows, "b", amount=10)
    assert not _hit(windows, "b")


def test_memory_is_bounded_and_the_longest_unused_counter_goes() -> None:
    windows = LocalWindows(Clock(), max_counters=3)
    for key in "abcad":
        _hit(windows, key, amount=5)
    assert len(windows) == 3
    assert not _hit(windows, "a", amount=1, limit=10)  # it has its ten
    assert _hit(windows, "b", amount=10)  # it was forgotten


@given(
    st.lists(st.tuples(st.floats(min_value=0.0, max_value=100.0), st.integers(1, 8)), max_size=40),
    st.integers(8, 20),
)
def test_it_allows_what_a_list_of_all_hits_would(hits: list[tuple[float, int]], limit: int) -> None:
    """The oracle keeps every hit and counts them anew each time."""
    clock = Clock()
    windows = LocalWindows(clock)
    past: list[tuple[float, int]] = []
    for wait, amount in hits:
        clock.now += wait
        index, seconds_in = divmod(clock.now, EXPIRY)
        current = sum(n for time, n in past if time // EXPIRY == index)
        previous = sum(n for time, n in past if time // EXPIRY == index - 1)
        weighted = floor(previous * (EXPIRY - seconds_in) / EXPIRY) + current
        is_allowed = weighted + amount <= limit
        assert _hit(windows, limit=limit, amount=amount) == is_allowed
        if is_allowed:
            past.append((clock.now, amount))


def test_the_window_before_the_last_one_is_forgotten() -> None:
    clock = Clock()
    windows = LocalWindows(clock)
    assert _hit(windows, amount=10)
    clock.now = 119.0  # of the first window, a sixtieth: nothing when rounded down
    assert _hit(windows, amount=10)
    clock.now = 126.0  # nine tenths of the second window, nothing of the first
    assert [_hit(windows, amount=amount) for amount in (2, 1, 1)] == [False, True, False]
    clock.now = 240.0  # the window before this one had no hit, and the one before that is gone
    assert _hit(windows, amount=10)


def test_a_window_tells_its_hits_and_the_seconds_that_it_and_the_one_before_last() -> None:
    clock = Clock()
    windows = LocalWindows(clock)
    _hit(windows, amount=4)
    found = []
    for clock.now in (0.0, 20.0, 60.0, 119.0, 120.0):
        found.append(asyncio.run(windows.get_sliding_window("a", EXPIRY)))
    assert found == [
        (0, 60.0, 4, 120.0),
        (0, 40.0, 4, 100.0),
        (4, 60.0, 0, 120.0),
        (4, 1.0, 0, 61.0),
        (0, 60.0, 0, 120.0),
    ]


def test_as_many_counters_are_kept_as_may_be() -> None:
    windows = LocalWindows(Clock(), max_counters=2)
    for key in "ab":
        _hit(windows, key, amount=10)
    assert len(windows) == 2
    assert not _hit(windows, "a")
    assert not _hit(windows, "b")
