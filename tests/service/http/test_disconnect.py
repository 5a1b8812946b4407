import asyncio

import pytest
from starlette.requests import Request
from starlette.types import Message, Scope

from service.errors import ClientGoneError
from service.http.disconnect import Hangup, attach_hangup, cancelled_on_disconnect, hangup_of


def _request(gone: asyncio.Event) -> Request:
    async def receive() -> Message:
        await gone.wait()
        return {"type": "http.disconnect"}

    return Request({"type": "http"}, receive)


def test_the_answer_of_work_that_ends_first_is_returned() -> None:
    async def work() -> str:
        return "done"

    async def scenario() -> str:
        return await cancelled_on_disconnect(_request(asyncio.Event()), work())

    assert asyncio.run(scenario()) == "done"


def test_an_error_of_the_work_comes_through() -> None:
    async def work() -> None:
        raise ZeroDivisionError

    async def scenario() -> None:
        await cancelled_on_disconnect(_request(asyncio.Event()), work())

    with pytest.raises(ZeroDivisionError):
        asyncio.run(scenario())


def test_work_is_cancelled_and_has_ended_when_its_client_is_gone() -> None:
    events = []

    async def scenario() -> None:
        gone = asyncio.Event()

        async def work() -> None:
            gone.set()
            try:
                await asyncio.Future()
            finally:
                await asyncio.sleep(0)
                events.append("released")

        with pytest.raises(ClientGoneError):
            await cancelled_on_disconnect(_request(gone), work())
        events.append("returned")

    asyncio.run(scenario())
    assert events == ["released", "returned"]


def test_cancelling_the_waiter_cancels_the_work() -> None:
    events = []

    async def scenario() -> None:
        started = asyncio.Event()

        async def work() -> None:
            started.set()
            try:
                await asyncio.Future()
            finally:
                events.append("released")

        waiter = asyncio.create_task(cancelled_on_disconnect(_request(asyncio.Event()), work()))
        await started.wait()
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter

    asyncio.run(scenario())
    assert events == ["released"]


def test_a_task_goes_on_after_its_client_has_gone() -> None:
    async def scenario() -> int:
        gone = asyncio.Event()
        gone.set()
        with pytest.raises(ClientGoneError):
            await cancelled_on_disconnect(_request(gone), asyncio.sleep(60))
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    assert asyncio.run(scenario()) == 0


def test_a_timeout_of_the_caller_is_no_client_that_has_gone() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(0):
            await cancelled_on_disconnect(_request(asyncio.Event()), asyncio.sleep(60))

    with pytest.raises(TimeoutError):
        asyncio.run(scenario())


def _hung_up(scope: Scope) -> Hangup:
    hangup = hangup_of(scope)
    assert hangup is not None
    return hangup


def _told_request() -> Request:
    """A request whose protocol tells, and that nobody may ask."""

    async def receive() -> Message:
        raise AssertionError("somebody waits for a message")

    scope: Scope = {"type": "http"}
    attach_hangup(scope)
    return Request(scope, receive)


def test_work_is_cancelled_by_a_protocol_that_tells() -> None:
    events = []

    async def scenario() -> None:
        request = _told_request()

        async def work() -> None:
            asyncio.get_running_loop().call_soon(_hung_up(request.scope).notify)
            try:
                await asyncio.Future()
            finally:
                await asyncio.sleep(0)
                events.append("released")

        with pytest.raises(ClientGoneError):
            await cancelled_on_disconnect(request, work())
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        events.append("returned")

    asyncio.run(scenario())
    assert events == ["released", "returned"]


def test_a_client_that_had_gone_before_cancels_work_once_it_waits() -> None:
    async def scenario() -> None:
        request = _told_request()
        _hung_up(request.scope).notify()
        with pytest.raises(ClientGoneError):
            await cancelled_on_disconnect(request, asyncio.sleep(60))
        await asyncio.sleep(0)

    asyncio.run(scenario())


def test_work_that_never_waits_is_done_though_its_client_has_gone() -> None:
    async def work() -> str:
        return "done"

    async def scenario() -> str:
        request = _told_request()
        _hung_up(request.scope).notify()
        answer = await cancelled_on_disconnect(request, work())
        await asyncio.sleep(0)  # nothing of it cancels what comes after
        return answer

    assert asyncio.run(scenario()) == "done"


def test_nobody_is_told_after_the_work() -> None:
    async def scenario() -> None:
        request = _told_request()
        await cancelled_on_disconnect(request, asyncio.sleep(0))
        _hung_up(request.scope).notify()
        await asyncio.sleep(0)

    asyncio.run(scenario())


def test_a_request_without_a_protocol_that_tells_has_no_hangup() -> None:
    assert hangup_of({"type": "http"}) is None
