"""Cancellation of a request's work when its client disconnects.

Owns the race between an answer and its client. The body must have been read before.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.types import Receive

from service.errors import ClientGoneError

T = TypeVar("T")


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled as soon as the client closes its connection.

    Raises:
        ClientGoneError: The client left first; `work` has been cancelled and has ended.
    """
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_wait_gone(request.receive))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGoneError
        return task.result()
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _wait_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
