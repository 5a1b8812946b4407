import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
import pytest

from service.engine.client.stream import EngineStream
from service.engine.errors import EngineUnavailableError, ProtocolError
from service.engine.messages import Cancelled, EngineCounters, EngineMessage, encode_frame

T = TypeVar("T")
FIRST, SECOND = Cancelled(segment_id=1), Cancelled(segment_id=2)


def _run(scenario: Callable[[EngineStream], Awaitable[T]]) -> T:
    async def main() -> T:
        return await scenario(EngineStream())

    return asyncio.run(main())


def test_messages_are_received_however_their_bytes_are_cut() -> None:
    async def scenario(stream: EngineStream) -> list[EngineMessage]:
        receiving = asyncio.create_task(stream.receive())
        data = encode_frame(FIRST)
        for place in range(len(data)):
            await asyncio.sleep(0)
            assert not receiving.done()
            stream.data_received(data[place : place + 1])
        return await receiving

    assert _run(scenario) == [FIRST]


def test_what_came_before_anybody_listens_is_handed_over_first() -> None:
    heard: list[EngineMessage] = []

    async def scenario(stream: EngineStream) -> None:
        stream.data_received(encode_frame(FIRST))
        listening = asyncio.create_task(stream.listen(heard.extend))
        await asyncio.sleep(0)
        stream.data_received(encode_frame(SECOND) + encode_frame(EngineCounters()))
        assert heard == [FIRST, SECOND, EngineCounters()]
        stream.connection_lost(None)
        await listening

    with pytest.raises(EngineUnavailableError, match="has closed the socket"):
        _run(scenario)


def test_what_came_before_the_end_is_received_and_then_the_end() -> None:
    async def scenario(stream: EngineStream) -> list[EngineMessage]:
        stream.data_received(encode_frame(FIRST))
        stream.connection_lost(ConnectionResetError())
        messages = await stream.receive()
        with pytest.raises(EngineUnavailableError, match="has reset the socket"):
            await stream.receive()
        return messages

    assert _run(scenario) == [FIRST]


def test_bytes_that_are_no_message_end_the_stream_for_its_listener() -> None:
    async def scenario(stream: EngineStream) -> None:
        payload = msgspec.msgpack.encode({"type": "unknown"})
        listening = asyncio.create_task(stream.listen(lambda _: None))
        await asyncio.sleep(0)
        stream.data_received(len(payload).to_bytes(4, "big") + payload)
        stream.data_received(encode_frame(FIRST))  # what follows is not read
        await listening

    with pytest.raises(ProtocolError, match="is no message"):
        _run(scenario)


def test_a_failure_of_the_listener_is_its_own() -> None:
    def fail(_: list[EngineMessage]) -> None:
        raise ZeroDivisionError

    async def scenario(stream: EngineStream) -> None:
        listening = asyncio.create_task(stream.listen(fail))
        await asyncio.sleep(0)
        stream.data_received(encode_frame(FIRST))
        await listening

    with pytest.raises(ZeroDivisionError):
        _run(scenario)


def test_a_listener_that_is_cancelled_leaves_the_stream_open() -> None:
    async def scenario(stream: EngineStream) -> str:
        listening = asyncio.create_task(stream.listen(lambda _: None))
        await asyncio.sleep(0)
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening
        return repr(stream)

    assert _run(scenario) == "<EngineStream open>"
