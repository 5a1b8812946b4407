"""Server-sent events, over an application server that writes down what it is sent."""

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest
from starlette.types import Message

from service.errors import ClientGoneError, deadline_exceeded, overloaded
from service.http.events import Event, EventStream
from service.telemetry.request_context import RequestContext, attach_context

ONE, TWO = Event(name="one", data={"text": "a\nb\u2028"}), Event(name="two", data=[1])


class Sent:
    """What was sent, and what the request's context says afterwards."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.context = RequestContext(request_id="r")
        self.is_closed = False

    async def send(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def body(self) -> str:
        return b"".join(message.get("body", b"") for message in self.messages).decode()

    async def answer(
        self, *steps: Event | Exception | asyncio.Event, pause_seconds: float = 60.0
    ) -> None:
        async def blocks() -> AsyncGenerator[bytes, None]:
            try:
                for step in steps:
                    if isinstance(step, Exception):
                        raise step
                    if isinstance(step, asyncio.Event):
                        await step.wait()
                    else:
                        yield step.encoded
            finally:
                self.is_closed = True

        async def receive() -> Message:
            raise AssertionError("the body was read before")

        scope = {"type": "http"}
        attach_context(scope, self.context)
        await EventStream(blocks(), pause_seconds=pause_seconds)(scope, receive, self.send)


def test_an_event_is_a_line_of_its_name_and_one_of_its_data() -> None:
    sent = Sent()
    asyncio.run(sent.answer(ONE, TWO))
    assert sent.body == ('event: one\ndata: {"text":"a\\nb\\u2028"}\n\nevent: two\ndata: [1]\n\n')
    start, *parts = sent.messages
    headers = dict(start["headers"])
    assert (start["status"], headers[b"x-accel-buffering"]) == (200, b"no")
    assert headers[b"content-type"].startswith(b"text/event-stream")
    assert b"content-length" not in headers
    assert [part["more_body"] for part in parts] == [True, True, False]
    assert (sent.context.late_status, sent.is_closed) == (None, True)


def test_an_answer_begins_with_a_comment_where_its_first_event_is_long_in_coming() -> None:
    sent = Sent()

    async def scenario() -> None:
        goes_on = asyncio.Event()
        error = deadline_exceeded(seconds=2.0)
        answer = asyncio.create_task(sent.answer(goes_on, error, pause_seconds=0.001))
        while sent.body.count(":\n\n") < 2:  # noqa: ASYNC110  # there is no event
            await asyncio.sleep(0)
        goes_on.set()
        await answer

    asyncio.run(scenario())
    start, *parts = sent.messages
    assert (start["type"], start["status"]) == ("http.response.start", 200)
    assert not parts[-1]["more_body"]
    event = sent.body.replace(":\n\n", "")
    assert event.startswith("event: error\ndata: ")
    assert json.loads(event.partition("data: ")[2])["status"] == 504
    assert (sent.context.late_status, sent.is_closed) == (504, True)


def test_what_is_raised_before_the_first_event_is_nobodys_event() -> None:
    sent = Sent()
    error = overloaded("full", value=1, limit=1, seconds=1.0)
    with pytest.raises(type(error), match="full"):
        asyncio.run(sent.answer(error, ONE))
    assert sent.messages == []


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(deadline_exceeded(seconds=2.0), 504, "deadline_exceeded"), (KeyError("x"), 500, "internal")],
)
def test_what_is_raised_later_is_the_last_event(error: Exception, status: int, code: str) -> None:
    sent = Sent()
    asyncio.run(sent.answer(ONE, error))
    *_, event, rest = sent.body.split("\n\n")
    name, _, data = event.partition("\ndata: ")
    content = json.loads(data)
    assert (name, rest) == ("event: error", "")
    assert set(content) == {"status", "error", "code", "value", "limit"}
    assert (content["status"], content["code"]) == (status, code)
    assert (sent.context.late_status, sent.context.code) == (status, code)
    assert not sent.messages[-1]["more_body"]


def test_a_client_that_has_gone_is_noted_and_sent_no_more() -> None:
    sent = Sent()
    asyncio.run(sent.answer(ONE, ClientGoneError()))
    assert sent.body == ONE.encoded.decode()
    assert (sent.context.late_status, sent.context.code) == (499, "client_gone")


def test_a_long_silence_has_comments() -> None:
    sent = Sent()

    async def scenario() -> None:
        goes_on = asyncio.Event()
        answer = asyncio.create_task(sent.answer(ONE, goes_on, TWO, pause_seconds=0.001))
        while sent.body.count(":\n\n") < 2:  # noqa: ASYNC110  # there is no event
            await asyncio.sleep(0)
        goes_on.set()
        await answer

    asyncio.run(scenario())
    assert sent.body.replace(":\n\n", "") == (ONE.encoded + TWO.encoded).decode()


def test_cancelling_an_answer_closes_its_events() -> None:
    sent = Sent()

    async def scenario() -> None:
        answer = asyncio.create_task(sent.answer(ONE, asyncio.Event()))
        while not sent.body:  # noqa: ASYNC110  # there is no event
            await asyncio.sleep(0)
        answer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answer

    asyncio.run(scenario())
    assert sent.is_closed
