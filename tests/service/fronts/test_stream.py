"""Streams between the processes of a server."""

import asyncio
import socket

import pytest

from service.engine.errors import ProtocolError
from service.fronts.messages import Count, Drain, Leave, front_messages, owner_messages
from service.fronts.stream import PeerGoneError, Stream


def test_messages_of_one_turn_arrive_together_and_in_order() -> None:
    async def scenario() -> None:
        one, other = socket.socketpair()
        owner = await Stream.over(one, front_messages())
        front = await Stream.over(other, owner_messages())
        owner.send(Drain())
        owner.send(Leave(), Leave(is_hurried=True))
        assert await front.receive() == [Drain(), Leave(), Leave(is_hurried=True)]
        counts = [Count(identity="key:a", num_characters=number) for number in range(1000)]
        front.send(*counts)
        came = []
        while len(came) < len(counts):
            came += await owner.receive()
        assert came == counts
        front.abort()
        with pytest.raises(PeerGoneError):
            await owner.receive()
        owner.send(Drain())  # to nobody
        await asyncio.sleep(0)
        owner.abort()

    asyncio.run(scenario())


def test_what_is_no_message_of_its_direction_is_refused() -> None:
    async def scenario() -> None:
        one, other = socket.socketpair()
        owner = await Stream.over(one, front_messages())
        front = await Stream.over(other, owner_messages())
        owner.send(Count(identity="a", num_characters=1))
        with pytest.raises(ProtocolError, match="is no message"):
            await front.receive()
        owner.abort()
        front.abort()

    asyncio.run(scenario())
