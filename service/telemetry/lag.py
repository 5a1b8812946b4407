"""Probe of the event loop's lag: how late it wakes a timer.

Owns the measurement alone; where it is recorded is the caller's choice.
"""

import asyncio
from collections.abc import Awaitable, Callable

INTERVAL_SECONDS = 0.1
"""Between two looks: some hundred between two scrapes, and hardly any work for a server at rest."""


async def probe_loop_lag(
    observe: Callable[[float], None],
    *,
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Sleep, observe by how many seconds the wake-up was late, until cancelled."""
    while True:
        due = clock() + INTERVAL_SECONDS
        await sleep(INTERVAL_SECONDS)
        observe(max(0.0, clock() - due))
