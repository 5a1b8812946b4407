"""Timeouts that end before their time."""

import asyncio


def expire(timeout: asyncio.Timeout) -> None:
    """Let a timeout that is being waited in expire now."""
    if not timeout.expired():
        timeout.reschedule(asyncio.get_running_loop().time())
