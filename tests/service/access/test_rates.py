import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import RateLimitItemPerMinute

from model.errors import ConfigError
from service.access.rates import RETRY_SECONDS, WINDOW_SECONDS, RateLimiter, _Redis, seconds_until
from service.access.windows import LocalWindows
from support.redis_server import BINARY, RedisServer, running_redis

needs_redis = pytest.mark.skipif(
    BINARY is None, reason="no redis-server; .ci/redis puts one into build/"
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with running_redis(tmp_path) as server:
        yield server


def _allowed(answers: list[float | None]) -> list[bool]:
    return [answer is None for answer in answers]


def test_counts_have_the_keys_of_the_library_that_counts_in_redis() -> None:
    limiter = RateLimiter(Clock())
    asyncio.run(limiter.spend("requests", "address:a", limit=7))
    expected = RateLimitItemPerMinute(7).key_for("requests", "address:a")
    assert list(limiter._local._counters) == [expected]


def test_who_and_kind_are_counted_apart() -> None:
    async def scenario() -> list[float | None]:
        limiter = RateLimiter(Clock())
        asked = [("requests", "a"), ("requests", "b"), ("characters", "a"), ("requests", "a")]
        return [await limiter.spend(kind, who, limit=1) for kind, who in asked]

    assert _allowed(asyncio.run(scenario())) == [True, True, True, False]


@given(
    limit=st.integers(1, 50),
    spent=st.lists(st.tuples(st.floats(0.0, 50.0), st.integers(1, 50)), max_size=20),
    cost=st.integers(1, 50),
)
def test_after_the_time_it_names_it_allows(
    limit: int, spent: list[tuple[float, int]], cost: int
) -> None:
    async def scenario() -> None:
        clock = Clock()
        limiter = RateLimiter(clock)
        for wait, amount in spent:
            clock.now += wait
            await limiter.spend("k", "a", limit=limit, cost=min(amount, limit))
        price = min(cost, limit)
        seconds = await limiter.spend("k", "a", limit=limit, cost=price)
        if seconds is None:
            return
        assert 0.0 <= seconds <= 2 * WINDOW_SECONDS
        clock.now += seconds + 0.001
        assert await limiter.spend("k", "a", limit=limit, cost=price) is None

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("cost", "previous", "current", "seconds_left", "seconds"),
    [
        (1, 0, 10, 20.0, 20 + 60 - 54),  # nine of this window's ten must have faded to eight
        (10, 0, 10, 20.0, 20 + 60),
        (1, 10, 5, 60.0, 36.0),
        (1, 10, 0, 3.0, 0.0),
        (1, 0, 0, 3.0, 0.0),
        (5, 10, 5, 45.0, 45.0),  # not one hit of the window before may count
        (4, 10, 5, 45.0, 39.0),
        (5, 0, 5, 45.0, 0.0),
        (6, 0, 5, 45.0, 45 + 60 - 48),
        (1, 10, 5, 90.0, 36.0),
        (10, 0, 10, -5.0, 60.0),
    ],
)
def test_when_to_come_back(
    cost: int, previous: int, current: int, seconds_left: float, seconds: float
) -> None:
    found = seconds_until(
        cost, limit=10, previous=previous, current=current, seconds_left=seconds_left
    )
    assert found == pytest.approx(seconds)


def test_a_cost_is_counted_whole() -> None:
    async def scenario() -> list[float | None]:
        limiter = RateLimiter(Clock())
        costs = (4, 4, 3, 2, 1)
        return [await limiter.spend("characters", "a", limit=10, cost=cost) for cost in costs]

    assert _allowed(asyncio.run(scenario())) == [True, True, False, True, False]


def test_what_is_refused_says_when_to_come_back() -> None:
    async def scenario() -> list[float | None]:
        clock = Clock()
        limiter = RateLimiter(clock)
        answers = [await limiter.spend("k", "a", limit=10, cost=10)]
        clock.now = 20.0
        answers.append(await limiter.spend("k", "a", limit=10, cost=5))
        clock.now = 70.0
        answers.append(await limiter.spend("k", "a", limit=10, cost=5))
        return answers

    # Half of the ten must have faded: thirty seconds into the window after theirs.
    assert asyncio.run(scenario()) == [None, pytest.approx(70.0), pytest.approx(20.0)]


class Stranger(LocalWindows):
    """Windows elsewhere, which as those of Redis say nothing of a window that is not there."""

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        previous, previous_ttl, current, ttl = await super().get_sliding_window(key, expiry)
        return previous, previous_ttl if previous else 0.0, current, ttl


def sharing(clock: Clock) -> RateLimiter:
    limiter = RateLimiter(clock)
    limiter._redis = _Redis(pool=None, windows=Stranger(clock), errors=(OSError,))  # type: ignore[arg-type]
    return limiter


def test_shared_counts_are_asked_first_and_costs_are_spent_whole_there_too() -> None:
    async def scenario() -> tuple[list[float | None], int]:
        limiter = sharing(Clock())
        costs = (4, 4, 3, 2, 1)
        answers = [await limiter.spend("characters", "a", limit=10, cost=cost) for cost in costs]
        return answers, len(limiter._local)

    answers, num_local = asyncio.run(scenario())
    assert _allowed(answers) == [True, True, False, True, False]
    assert num_local == 0


def test_shared_counts_of_a_first_window_say_when_to_come_back() -> None:
    async def scenario() -> float | None:
        clock = Clock()
        limiter = sharing(clock)
        await limiter.spend("k", "a", limit=10, cost=10)
        clock.now = 20.0
        return await limiter.spend("k", "a", limit=10, cost=1)

    # The window ends after forty seconds, and six after that one of its ten has faded.
    assert asyncio.run(scenario()) == pytest.approx(46.0)


class Gone(Stranger):
    """Windows that nobody answers for; notes when it was asked."""

    base_exceptions: tuple[type[Exception], ...] = ()  # none that the library would replace

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.asked_at: list[float] = []
        self._now = clock

    async def acquire_sliding_window_entry(
        self, key: str, limit: int, expiry: int, amount: int = 1
    ) -> bool:
        self.asked_at.append(self._now())
        raise ConnectionRefusedError


def test_what_failed_to_answer_is_asked_again_after_five_seconds_and_not_before() -> None:
    async def scenario() -> tuple[list[float], list[float | None]]:
        clock = Clock()
        gone = Gone(clock)
        limiter = RateLimiter(clock)
        limiter._redis = _Redis(pool=None, windows=gone, errors=(OSError,))  # type: ignore[arg-type]
        answers = []
        for clock.now in (0.0, 0.0, 4.9, 5.0, 9.9, 10.0):
            answers.append(await limiter.spend("k", "a", limit=5))
        return gone.asked_at, answers

    asked_at, answers = asyncio.run(scenario())
    assert asked_at == [0.0, 5.0, 10.0]
    assert _allowed(answers) == [True] * 5 + [False]


@needs_redis
def test_servers_that_share_a_redis_share_their_counts(redis: RedisServer) -> None:
    async def scenario() -> list[float | None]:
        limiters = [RateLimiter(Clock(), redis.url) for _ in range(2)]
        answers = [
            await limiters[number % 2].spend("requests", "key:alice", limit=5)
            for number in range(8)
        ]
        answers.append(await limiters[0].spend("requests", "key:bob", limit=5, cost=5))
        answers.append(await limiters[1].spend("requests", "key:bob", limit=5))
        for limiter in limiters:
            await limiter.close()
        return answers

    answers = asyncio.run(scenario())
    assert _allowed(answers) == [True] * 5 + [False] * 3 + [True, False]
    refused = [seconds for seconds in answers if seconds is not None]
    assert all(0.0 < seconds <= 2 * WINDOW_SECONDS for seconds in refused)


@needs_redis
def test_many_at_once_spend_no_more_than_the_limit(redis: RedisServer) -> None:
    async def scenario() -> int:
        limiter = RateLimiter(Clock(), redis.url)
        answers = await asyncio.gather(
            *(limiter.spend("requests", "a", limit=20) for _ in range(60))
        )
        await limiter.close()
        return answers.count(None)

    assert asyncio.run(scenario()) == 20


@needs_redis
def test_a_redis_that_goes_is_done_without_and_taken_up_again(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dragoman")

    async def scenario() -> list[float | None]:
        clock = Clock()
        limiter = RateLimiter(clock, redis.url)
        answers = [await limiter.spend("requests", "a", limit=2) for _ in range(2)]
        redis.stop()
        answers += [await limiter.spend("requests", "a", limit=2) for _ in range(2)]
        clock.now += RETRY_SECONDS  # it is asked again, and is still gone
        answers += [await limiter.spend("requests", "a", limit=2)]
        redis.start()
        clock.now += RETRY_SECONDS
        assert limiter.is_lost
        answers += [await limiter.spend("requests", "a", limit=2) for _ in range(3)]
        assert not limiter.is_lost
        await limiter.close()
        return answers

    three = [True, True, False]
    assert _allowed(asyncio.run(scenario())) == [True, True, *three, *three]
    events = [record.getMessage() for record in caplog.records]
    assert events == ["redis_lost", "redis_back"]


def test_a_redis_that_never_answers_delays_little_and_is_not_asked_again_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "dragoman")

    num_connections = 0

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal num_connections
        num_connections += 1
        await reader.read()
        writer.close()

    async def scenario() -> list[float | None]:
        async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            limiter = RateLimiter(Clock(), f"redis://:pass-word@127.0.0.1:{port}")
            assert not limiter.is_lost, "it was not asked"
            answers = [await limiter.spend("requests", "a", limit=2) for _ in range(3)]
            assert limiter.is_lost
            await limiter.close()
        return answers

    assert _allowed(asyncio.run(scenario())) == [True, True, False]
    # The attempts of the first call alone: the later two did not ask.
    assert num_connections <= 2
    (record,) = caplog.records
    assert "pass-word" not in repr(record.__dict__)


@pytest.mark.parametrize(
    "option",
    ["ssl=true", "hepl=1", "encoding=nonsense", "retry=5", "db=x", "max_connections=-3"],
)
def test_an_option_that_redis_has_not_is_refused_at_start(option: str) -> None:
    with pytest.raises(ConfigError, match=r"DRAGOMAN_REDIS_URL has an? (option|part) ") as caught:
        RateLimiter(Clock(), f"redis://:pass-word@host?{option}")
    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize("rest", ["host:port/0", "pass#word@host", "[::1"])
def test_a_url_that_cannot_be_read_says_how_to_write_a_password(rest: str) -> None:
    with pytest.raises(ConfigError, match=r"has a part that .* # as %23") as caught:
        RateLimiter(Clock(), f"redis://:pass-word{rest}")
    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://:pass-word@host", "pass-word", ""])
def test_a_url_that_is_none_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(ConfigError, match="DRAGOMAN_REDIS_URL must begin with") as caught:
        RateLimiter(Clock(), url)
    assert "pass-word" not in str(caught.value)
