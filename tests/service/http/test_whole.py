"""Answers in one message are, byte for byte, what uvicorn makes of two."""

import asyncio
import re

import pytest
from starlette.types import Message

from service.http.replies import JsonReply
from service.http.whole import WHOLE
from support.wire import CLOSE, get, serving_app

_DATE = re.compile(rb"date: [^\r]+")


async def _answer(reader: asyncio.StreamReader, *, has_body: bool = True) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
    body = await reader.readexactly(length) if has_body else b""
    return _DATE.sub(b"", head) + body


@pytest.mark.parametrize("status", [200, 400, 429, 503])
def test_an_answer_in_one_message_is_that_of_two_and_the_connection_goes_on(status: int) -> None:
    async def ask() -> None:
        async with serving_app() as served:
            reader, writer = await served.connect()
            answers = []
            for form in ("whole", "parts", "whole", "parts"):
                writer.write(get(f"/{form}/{status}"))
                answers.append(await _answer(reader))
            assert len(set(answers)) == 1
            assert answers[0].endswith('{"path":"größer"}'.encode())
            assert b"x-given: this\r\n" in answers[0]
            writer.close()

    asyncio.run(ask())


def test_without_a_length_http_1_0_gets_no_chunks_but_the_end_of_its_connection() -> None:
    async def ask() -> None:
        async with serving_app() as served:
            for request in (get("/large"), get("/large", b"connection: keep-alive")):
                head, _, body = (
                    await served.exchange(request.replace(b"HTTP/1.1", b"HTTP/1.0"))
                ).partition(b"\r\n\r\n")
                assert b"transfer-encoding" not in head
                assert b"\r\nconnection: close" in head
                assert body == b"x" * 256 * 65_536
            answer = await served.exchange(get("/one").replace(b"HTTP/1.1", b"HTTP/1.0"))
            assert b"content-length: 9\r\n" in answer
            assert answer.endswith(b"\r\n\r\nfine /one")

    asyncio.run(ask())


def test_answers_of_requests_that_were_sent_ahead_keep_their_order() -> None:
    async def ask() -> None:
        async with serving_app() as served:
            reader, writer = await served.connect()
            writer.write(b"".join(get(f"/whole/{status}") for status in (200, 400, 503, 200)))
            found = [(await _answer(reader))[9:12] for _ in range(4)]
            assert found == [b"200", b"400", b"503", b"200"]
            writer.close()

    asyncio.run(ask())


def test_the_interim_answer_to_a_body_that_is_there_already_comes_before_the_answer() -> None:
    async def ask() -> None:
        async with serving_app() as served:
            reader, writer = await served.connect()
            head = get("/whole/200", b"expect: 100-continue", b"content-length: 2")
            writer.write(head.replace(b"GET", b"POST") + b"ab" + get("/one", CLOSE))
            answers = (await reader.read()).split(b"HTTP/1.1 ")[1:]
            assert [answer[:3] for answer in answers] == [b"100", b"200", b"200"]
            writer.close()

    asyncio.run(ask())


def test_where_the_connection_ends_or_the_head_alone_is_asked_for_uvicorn_answers() -> None:
    async def ask() -> None:
        async with serving_app() as served:
            whole, parts = [
                _DATE.sub(b"", await served.exchange(get(f"/{form}/200", CLOSE)))
                for form in ("whole", "parts")
            ]
            assert whole == parts
            assert b"connection: close\r\n" in whole
            reader, writer = await served.connect()
            for form in ("whole", "parts"):
                writer.write(get(f"/{form}/200").replace(b"GET", b"HEAD"))
            heads = [await _answer(reader, has_body=False) for _ in range(2)]
            assert heads[0] == heads[1]
            writer.close()

    asyncio.run(ask())


def test_a_header_that_would_end_the_head_is_refused_as_by_uvicorn() -> None:
    async def ask() -> None:
        async with serving_app() as served:
            reader, writer = await served.connect()
            writer.write(get("/split/200"))
            answer = await reader.read()
            assert b"injected" not in answer
            writer.close()

    asyncio.run(ask())


def test_under_another_server_it_is_two_messages() -> None:
    async def ask() -> list[Message]:
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            raise AssertionError("nothing is read")

        await JsonReply({"a": 1})({"type": "http"}, receive, send)
        return sent

    start, body = asyncio.run(ask())
    assert WHOLE not in start
    assert body["body"] == b'{"a":1}'
