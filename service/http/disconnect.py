"""Cancellation of a request's work when its client disconnects.

Owns the race between an answer and its client. The body must have been read before. The work is
done in the request's own task, which the watcher of the client cancels: one task a request, as in
`asyncio.timeout`, and not two with a third that waits for both.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.types import Receive

from service.errors import ClientGoneError

T = TypeVar("T")


async def cancelled_on_disconnect(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled as soon as the client closes its connection.

    Raises:
        ClientGoneError: The client left first; `work` has been cancelled and has ended.
    """
    watcher = _Watcher(request.receive)
    try:
        return await work
    except asyncio.CancelledError:
        if watcher.is_sole_reason:
            raise ClientGoneError from None
        raise
    finally:
        watcher.stop()


class _Watcher:
    """Watcher of one client, which cancels the task that made it when the client has gone."""

    def __init__(self, receive: Receive) -> None:
        task = asyncio.current_task()
        assert task is not None  # it is awaited
        self._task = task
        self._num_cancelled_before = task.cancelling()
        self._has_cancelled = False
        self._watching = asyncio.create_task(self._watch(receive))

    @property
    def is_sole_reason(self) -> bool:
        """Whether the task was cancelled because the client has gone, and for no other reason."""
        return self._has_cancelled and self._task.cancelling() - 1 <= self._num_cancelled_before

    def stop(self) -> None:
        """Watch no more, and take back what was cancelled."""
        self._watching.cancel()
        if self._has_cancelled:
            self._task.uncancel()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._has_cancelled = True
        self._task.cancel()
