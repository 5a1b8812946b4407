import pytest

from service.engine.client.throughput import MAX_WAIT_SECONDS, MIN_WAIT_SECONDS, Throughput


def departures(*times: float, window: int = 256) -> Throughput:
    throughput = Throughput(window=window)
    for time in times:
        throughput.answered(time)
    return throughput


def test_the_wait_is_what_recent_departures_would_need():
    # A segment every half second, twelve of them must go.
    assert departures(0.0, 0.5, 1.0, 1.5, 2.0).wait_seconds(12, now=2.0) == pytest.approx(6.0)


def test_the_wait_grows_while_nothing_leaves():
    throughput = departures(0.0, 0.5, 1.0)
    assert throughput.wait_seconds(4, now=1.0) == pytest.approx(2.0)
    assert throughput.wait_seconds(4, now=5.0) == pytest.approx(10.0)


def test_only_the_latest_departures_count():
    slow_then_quick = departures(0.0, 100.0, 101.0, 102.0, window=3)
    assert slow_then_quick.wait_seconds(5, now=102.0) == pytest.approx(5.0)


@pytest.mark.parametrize("times", [(), (3.0,)])
def test_without_experience_the_wait_is_the_shortest(times):
    assert departures(*times).wait_seconds(1000, now=50.0) == MIN_WAIT_SECONDS


def test_the_wait_stays_within_its_bounds():
    throughput = departures(0.0, 1.0)
    assert throughput.wait_seconds(1000, now=1.0) == MAX_WAIT_SECONDS
    assert departures(0.0, 0.001).wait_seconds(1, now=0.001) == MIN_WAIT_SECONDS


def test_two_departures_are_experience():
    assert departures(0.0, 4.0).wait_seconds(2, now=4.0) == pytest.approx(8.0)


def test_by_default_256_departures_count():
    throughput = Throughput()
    for time in (-1000.0, *range(255)):
        throughput.answered(time)
    assert throughput.wait_seconds(2, now=254.0) == pytest.approx(2 * 1254 / 255)
    throughput.answered(255.0)
    assert throughput.wait_seconds(2, now=255.0) == pytest.approx(2.0)


def test_the_bounds_are_a_second_and_half_a_minute():
    assert departures(0.0, 1.0).wait_seconds(29, now=1.0) == pytest.approx(29.0)
    assert departures(0.0, 1.0).wait_seconds(31, now=1.0) == 30.0
    assert departures().wait_seconds(1, now=0.0) == 1.0
    assert departures(0.0, 0.5).wait_seconds(1, now=0.5) == 1.0


def test_what_left_before_there_was_nothing_to_leave_does_not_count():
    throughput = departures(0.0, 0.5, 1.0)
    throughput.begin()
    assert throughput.wait_seconds(1000, now=3601.0) == MIN_WAIT_SECONDS
    for time in (3602.0, 3604.0):
        throughput.answered(time)
    assert throughput.wait_seconds(5, now=3604.0) == pytest.approx(10.0)
