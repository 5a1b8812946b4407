"""The transport of one answer: what is written together, and when a head goes alone."""

import asyncio
from types import SimpleNamespace
from typing import cast

from service.http.endings import AnswerTransport, EndingProtocol


class Wire:
    """A connection that remembers what was written to it, write by write."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.writes: list[bytes] = []
        self.is_closed = False
        self.transport = SimpleNamespace(
            write=self.writes.append, is_closing=lambda: self.is_closed
        )

    def end_answer(self) -> None:
        self.is_closed = True


def answer_on(wire: Wire, *, has_body: bool = True) -> AnswerTransport:
    return AnswerTransport(cast("EndingProtocol", wire), has_body=has_body)


def test_a_head_is_written_with_the_body_that_follows_at_once() -> None:
    async def scenario() -> None:
        wire = Wire(asyncio.get_running_loop())
        answer = answer_on(wire)
        answer.write(b"head")
        answer.write(b"body")
        answer.write(b"more")
        await asyncio.sleep(0)
        assert wire.writes == [b"headbody", b"more"]

    asyncio.run(scenario())


def test_a_head_whose_body_takes_longer_goes_at_the_loops_next_turn() -> None:
    async def scenario() -> None:
        wire = Wire(asyncio.get_running_loop())
        answer = answer_on(wire)
        answer.write(b"head")
        assert wire.writes == []
        await asyncio.sleep(0)
        assert wire.writes == [b"head"]
        answer.write(b"body")
        assert wire.writes == [b"head", b"body"]

    asyncio.run(scenario())


def test_a_head_that_is_the_last_of_an_answer_is_written_before_the_connection_ends() -> None:
    async def scenario() -> None:
        wire = Wire(asyncio.get_running_loop())
        answer = answer_on(wire)
        answer.write(b"head")
        answer.close()
        assert (wire.writes, answer.is_closing()) == ([b"head"], True)
        await asyncio.sleep(0)
        assert wire.writes == [b"head"]

    asyncio.run(scenario())


def test_an_interim_answer_is_no_head_and_goes_before_what_is_written_past_it() -> None:
    async def scenario() -> None:
        wire = Wire(asyncio.get_running_loop())
        answer = answer_on(wire)
        answer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert wire.writes == [b"HTTP/1.1 100 Continue\r\n\r\n"]
        answer.write(b"head")
        answer.write(b"body")
        assert wire.writes[1:] == [b"headbody"]

    asyncio.run(scenario())


def test_a_head_that_nothing_follows_waits_for_nothing() -> None:
    async def scenario() -> None:
        wire = Wire(asyncio.get_running_loop())
        answer_on(wire, has_body=False).write(b"head")
        assert wire.writes == [b"head"]

    asyncio.run(scenario())


def test_a_head_is_dropped_with_a_connection_that_was_closed_meanwhile() -> None:
    async def scenario() -> None:
        wire = Wire(asyncio.get_running_loop())
        answer_on(wire).write(b"head")
        wire.is_closed = True
        await asyncio.sleep(0)
        assert wire.writes == []

    asyncio.run(scenario())
