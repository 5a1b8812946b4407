import asyncio

import pytest

from service.telemetry.lag import INTERVAL_SECONDS, probe_loop_lag


def test_the_probe_observes_how_late_the_loop_was_and_never_less_than_nothing() -> None:
    times = iter([0.0, INTERVAL_SECONDS + 0.5, 10.0, 10.0, 20.0])
    observed: list[float] = []

    async def sleep(_seconds: float) -> None:
        if len(observed) == 2:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(probe_loop_lag(observed.append, clock=lambda: next(times), sleep=sleep))
    assert observed == [pytest.approx(0.5), 0.0]
