"""Rate limits of requests and characters a minute, counted here or in a shared Redis.

Owns counting, in this process or in a Redis that several servers share, and when to come back.
Knows neither keys nor requests: a caller is a string, which `service.access.access` makes.

A Redis that does not answer closes nothing and delays nothing for long: counting goes on in
this process, Redis is asked again after a while, and the log says so once each way.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from model.errors import ConfigError
from service.access.windows import LocalWindows, Windows

if TYPE_CHECKING:
    from redis.asyncio import ConnectionPool

_LOGGER = logging.getLogger("dragoman.rates")

WINDOW_SECONDS = 60
REDIS_SECONDS = 1.0
"""Longest wait for an answer of Redis."""
RETRY_SECONDS = 5.0
"""Time without Redis after it failed to answer."""

_MAX_REDIS_CONNECTIONS = 32
_KEY_PREFIX = "dragoman"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Redis:
    pool: "ConnectionPool"
    windows: Windows
    errors: tuple[type[Exception], ...]


class RateLimiter:
    """Counter of requests and characters of each caller within a minute.

    Args:
        clock: Seconds, monotonic.
        redis_url: Where counts are shared; None keeps them here.

    Raises:
        ConfigError: The URL is none, or the Redis client is not installed.
    """

    def __init__(self, clock: Callable[[], float], redis_url: str | None = None) -> None:
        self._clock = clock
        self._local = LocalWindows(clock)
        self._redis = None if redis_url is None else _open_redis(redis_url)
        self._is_lost = False
        self._retry_at = clock()

    @property
    def is_lost(self) -> bool:
        """Whether Redis did not answer when last asked, so that counts are this process's."""
        return self._is_lost

    async def spend(self, kind: str, identity: str, *, limit: int, cost: int = 1) -> float | None:
        """Count `cost` for `identity`, if fewer than `limit` of this kind a minute allow it.

        Args:
            kind: What is counted.
            identity: Which caller it counts for.
            limit: Most a minute.
            cost: At most `limit`; more can never be spent.

        Returns:
            None if it was counted, else the seconds after which it could be.
        """
        key = f"LIMITER/{kind}/{identity}/{limit}/1/minute"  # as `limits` names it
        redis = self._redis
        if redis is not None and self._clock() >= self._retry_at:
            try:
                async with asyncio.timeout(REDIS_SECONDS):
                    wait = await _spend(redis.windows, key, limit, cost)
            except redis.errors as error:
                self._note_lost(error)
            else:
                self._note_back()
                return wait
        return await _spend(self._local, key, limit, cost)

    async def give_back(self, kind: str, identity: str, *, limit: int) -> None:
        """Take back one that was counted for `identity` and belongs to another caller."""
        await self.spend(kind, identity, limit=limit, cost=-1)

    async def close(self) -> None:
        """Close the connections to Redis."""
        if self._redis is not None:
            await self._redis.pool.aclose()

    def _note_lost(self, error: Exception) -> None:
        self._retry_at = self._clock() + RETRY_SECONDS
        if not self._is_lost:
            self._is_lost = True
            # The message of a connection error can hold the address, and with it a password.
            fields = {"error": type(error).__name__}
            _LOGGER.error("redis_lost", extra={"fields": fields})

    def _note_back(self) -> None:
        # An answer to what was asked before the loss says nothing.
        if self._is_lost and self._clock() >= self._retry_at:
            self._is_lost = False
            _LOGGER.warning("redis_back")


def _open_redis(url: str) -> _Redis:
    try:
        from limits.aio.storage import RedisStorage  # noqa: PLC0415  # an extra
        from redis.asyncio import BlockingConnectionPool  # noqa: PLC0415  # same
        from redis.exceptions import RedisError  # noqa: PLC0415  # same
    except ImportError as error:
        raise ConfigError(
            "DRAGOMAN_REDIS_URL is set, but the Redis client is not installed:"
            " pip install -e '.[redis]'"
        ) from error
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise ConfigError("DRAGOMAN_REDIS_URL must begin with redis://, rediss:// or unix://")
    try:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_MAX_REDIS_CONNECTIONS,
            timeout=REDIS_SECONDS,
            socket_timeout=REDIS_SECONDS,
            socket_connect_timeout=REDIS_SECONDS,
        )
    except (TypeError, ValueError) as error:
        raise _unusable("a part", error) from None
    try:
        # It opens nothing, and takes every option of the URL. Redis' client has no types here.
        pool.make_connection()  # type: ignore[no-untyped-call]
        pool.get_encoder().encode("text")  # type: ignore[no-untyped-call]
    except (AttributeError, TypeError, ValueError, LookupError, RedisError) as error:
        raise _unusable("an option", error) from None
    windows = RedisStorage(
        "redis://",
        implementation="redispy",
        key_prefix=_KEY_PREFIX,
        connection_pool=pool,  # type: ignore[arg-type]  # passed on; its annotation forgets it
    )
    return _Redis(pool=pool, windows=windows, errors=(RedisError, OSError, TimeoutError))


def _unusable(what: str, error: Exception) -> ConfigError:
    """The error of an unusable URL, without quoting it: it can have a password."""
    return ConfigError(
        f"DRAGOMAN_REDIS_URL has {what} that cannot be used ({type(error).__name__}); in user name"
        " and password write / as %2F, # as %23, ? as %3F, @ as %40 and : as %3A"
    )


async def _spend(windows: Windows, key: str, limit: int, cost: int) -> float | None:
    if await windows.acquire_sliding_window_entry(key, limit, WINDOW_SECONDS, cost):
        return None
    previous, previous_ttl, current, current_ttl = await windows.get_sliding_window(
        key, WINDOW_SECONDS
    )
    return seconds_until(
        cost,
        limit=limit,
        previous=previous,
        current=current,
        seconds_left=previous_ttl if previous else current_ttl - WINDOW_SECONDS,
    )


def seconds_until(
    cost: int, *, limit: int, previous: int, current: int, seconds_left: float
) -> float:
    """Time until `cost` fits, if nothing else is spent.

    Args:
        cost: From 1 to `limit`.
        limit: Most a window.
        previous: Hits of the window before, which weigh by `seconds_left` of a whole window.
        current: Hits of this window.
        seconds_left: Until this window is the previous one.
    """
    seconds_left = min(max(seconds_left, 0.0), WINDOW_SECONDS)
    room = limit - current - cost
    if room >= 0:
        if not previous:
            return 0.0
        return max(0.0, seconds_left - room * WINDOW_SECONDS / previous)
    # This window's own hits are too many: they must become the previous one's and fade.
    return seconds_left + WINDOW_SECONDS - (limit - cost) * WINDOW_SECONDS / current
