import asyncio
from collections.abc import Iterator

import pytest

from service.lag import INTERVAL_SECONDS, probe_loop_lag


def test_the_probe_observes_how_late_the_loop_was_and_never_less_than_nothing() -> None:
    times: Iterator[float] = iter([0.0, INTERVAL_SECONDS + 0.5, 10.0, 10.0])
    observed: list[float] = []

    async def sleep(_seconds: float) -> None:
        if len(observed) == 2:
            raise asyncio.CancelledError

    with pytest.raises((asyncio.CancelledError, StopIteration, RuntimeError)):
        asyncio.run(probe_loop_lag(observed.append, clock=lambda: next(times), sleep=sleep))
    assert observed == [pytest.approx(0.5), 0.0]
