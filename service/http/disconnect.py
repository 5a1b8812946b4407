"""Cancellation of a request's work when its client disconnects.

Owns the race between an answer and its client. The body must have been read before. The work is
done in the request's own task, which is cancelled when the client has gone: one task a request, as
in `asyncio.timeout`, and not two with a third that waits for both.

Two sources tell of a disconnect. Our own protocol attaches a `Hangup` to every request, which
costs nothing until a client leaves. For a request that came by another server a second task waits
for the message of ASGI.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.types import Receive, Scope

from service.errors import ClientGoneError

T = TypeVar("T")

_KEY = "dragoman.hangup"


class Hangup:
    """Disconnect of one request's client: whether it has happened, and what is then called.

    Attributes:
        is_gone: The client has disconnected.
        on_gone: Called when it does; None: no work is to be cancelled now.
    """

    __slots__ = ("is_gone", "on_gone")

    def __init__(self) -> None:
        self.is_gone = False
        self.on_gone: Callable[[], None] | None = None

    def notify(self) -> None:
        """Note that the client has gone."""
        self.is_gone = True
        if self.on_gone is not None:
            self.on_gone()


def attach_hangup(scope: Scope) -> None:
    """Give a request a `Hangup`; the protocol that attaches one has to notify it."""
    scope[_KEY] = Hangup()


def hangup_of(scope: Scope) -> Hangup | None:
    """The `Hangup` of a request; None where none was attached."""
    found = scope.get(_KEY)
    return found if isinstance(found, Hangup) else None


async def cancelled_on_disconnect(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled as soon as the client closes its connection.

    Raises:
        ClientGoneError: The client left first; `work` has been cancelled and has ended.
    """
    hangup = hangup_of(request.scope)
    watcher = _MessageWatch(request.receive) if hangup is None else _HangupWatch(hangup)
    try:
        return await work
    except asyncio.CancelledError:
        if watcher.is_sole_reason:
            raise ClientGoneError from None
        raise
    finally:
        watcher.stop()


class _Cancelling:
    """Cancellation of the current task by its client's disconnect, distinct from any other."""

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # it is awaited
        self._task = task
        self._num_cancelled_before = task.cancelling()
        self._has_cancelled = False

    @property
    def is_sole_reason(self) -> bool:
        """Whether the task was cancelled because the client has gone, and for no other reason."""
        return self._has_cancelled and self._task.cancelling() - 1 <= self._num_cancelled_before

    def cancel(self) -> None:
        """Cancel the task: the client has gone."""
        self._has_cancelled = True
        self._task.cancel()

    def stop(self) -> None:
        """Watch no more, and take back what was cancelled."""
        if self._has_cancelled:
            self._task.uncancel()


class _HangupWatch(_Cancelling):
    """Cancellation when the request's `Hangup` is notified."""

    def __init__(self, hangup: Hangup) -> None:
        super().__init__()
        self._hangup = hangup
        hangup.on_gone = self.cancel
        if hangup.is_gone:  # a task that runs is not cancelled until it waits, which it may not
            asyncio.get_running_loop().call_soon(hangup.notify)

    def stop(self) -> None:
        """Watch no more, and take back what was cancelled."""
        self._hangup.on_gone = None
        super().stop()


class _MessageWatch(_Cancelling):
    """Cancellation when a second task has received the message of a disconnect."""

    def __init__(self, receive: Receive) -> None:
        super().__init__()
        self._watching = asyncio.create_task(self._watch(receive))

    def stop(self) -> None:
        """Watch no more, and take back what was cancelled."""
        self._watching.cancel()
        super().stop()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.cancel()
