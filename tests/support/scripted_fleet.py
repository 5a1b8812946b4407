"""A router before servers that answer what each of them always answers, without a network."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

from starlette.requests import Request

from model.text.languages.tags import LanguagePair
from service.errors import RequestError, unavailable
from service.http.disconnect import attach_hangup
from service.http.replies import error_content
from service.models.routes.routing import Offer, RoutingTable
from service.router.asking import Asking
from service.router.connection import Asked
from service.router.directory import GroupState, ServerState
from service.router.dispatch import Dispatcher
from service.router.groups import Group
from service.router.members import Member, Members
from service.router.pool import Answer
from service.router.watch import Watch
from service.settings import Settings
from service.telemetry.request_context import RequestContext, attach_context


def group_of(name: str, source: str) -> GroupState:
    """A group that is up, and translates from one language to English."""
    pairs = [LanguagePair(source=source, target="en")]
    offers = (Offer(name=name, pairs=pairs),)
    table = RoutingTable(offers, pivot=None)
    return GroupState(name=name, offers=offers, table=table, has_answered=True)


def refusing(code: str = "draining") -> Answer:
    """The refusal of a server that begins nothing."""
    body = json.dumps(error_content(unavailable("no", code=code).problem)).encode()
    return Answer(503, [(b"content-type", b"application/json")], beginning=body)


def answering(data: bytes = b"{}", status: int = 200) -> Answer:
    """An answer that is all there."""
    return Answer(status, [(b"content-type", b"application/json")], beginning=data)


Answers = Answer | Exception | dict[str, Answer | Exception]
"""Of a group, or of each of its servers by address."""
UP = ServerState(problem="")
AWAY = ServerState(problem="it closed the connection")
SILENT = ServerState(problem="silent for 5 seconds", is_mute=True)
UNREADY = ServerState(problem="the server is shutting down", is_unready=True)


class ScriptedPool:
    """Connections to a server, which answers what it always answers."""

    def __init__(self, address: str, answer: Answer | Exception, asked: list[str]) -> None:
        self.address = address
        self.answer = answer
        self.asked = asked
        self.hangs = False

    async def ask(self, _asked: Asked, *, connect_seconds: float) -> Answer:
        assert connect_seconds in (1.5, 3.0)
        self.asked.append(self.address)
        if self.hangs:
            await asyncio.Event().wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        pass


class ScriptedFleet:
    """A router before groups, which are as they answer; those of `away` are known to be down."""

    def __init__(self, *, away: tuple[str, ...] = (), **answers: Answers) -> None:
        self.asked: list[str] = []
        self.num_looks = 0
        self.members: dict[str, Members] = {}
        self.found: dict[str, list[str]] = {}
        for name, told in answers.items():
            each = told if isinstance(told, dict) else {"": told}
            self.members[name] = Members(
                Group(name=name, host=name, port=80),
                seconds=1.0,
                keep_seconds=60.0,
                resolve=self._resolve,
                clock=lambda: 0.0,
            )
            self.members[name]._take([name + address for address in each])
            for member, answer in zip(self.members[name].all, each.values(), strict=True):
                pool = ScriptedPool(member.address, answer, self.asked)
                member.pool = member.asker = cast(Any, pool)
                member.state = AWAY if name in away else UP
        metrics: Any = SimpleNamespace(
            passed=lambda _name, _status: None, group_is=lambda _name, *, is_up: None
        )
        detection: Any = SimpleNamespace(is_on=False)
        self.watch = Watch(self.members, pivot=None, detection=detection, metrics=metrics)
        for name in answers:
            self.watch._note(group_of(name, "de"))
        parts: dict[str, Any] = {
            "asking": Asking(watch=self.watch, metrics=metrics),
            "reader": SimpleNamespace(read_bytes=self._read),
            "detection": detection,
            "arrivals": None,
            "lists": None,
            "room": None,
        }
        self.dispatcher = Dispatcher(settings=Settings(), **parts)
        self.data = b""

    async def _resolve(self, host: str, _port: int) -> list[str]:
        self.num_looks += 1
        return self.found.get(host, [one.address for one in self.members[host].named])

    def member(self, address: str) -> Member:
        """The server with this address."""
        every = [one for members in self.members.values() for one in members.all]
        return next(one for one in every if one.address == address)

    def is_now(self, state: ServerState, *addresses: str) -> None:
        """Have some servers be as if they had last answered so."""
        for address in addresses:
            self.member(address).state = state
        for group in self.watch.directory.groups:
            self.watch._note(group)

    def leaves(self, address: str) -> None:
        """Have a server leave its name."""
        self.member(address).left_at = 0.0

    async def _read(self, _request: Request) -> bytes:
        return self.data

    def ask(self, handler: str, path: str, method: str = "GET", data: bytes = b"") -> Any:
        """Status, and body of what was answered; of a refusal its code."""
        self.data = data
        headers = [(b"content-type", b"application/json")]
        scope: dict[str, Any] = {"type": "http", "method": method, "path": path}
        scope |= {"raw_path": path.encode(), "query_string": b"", "client": None}
        scope["headers"] = headers
        attach_context(scope, RequestContext(request_id="a"))
        attach_hangup(scope)
        sent: list[Any] = []

        async def receive() -> Any:
            raise AssertionError("the body was read before")

        async def send(message: Any) -> None:
            sent.append(message)

        async def answer() -> None:
            response = await getattr(self.dispatcher, handler)(Request(scope, receive))
            await response(scope, receive, send)

        try:
            asyncio.run(answer())
        except RequestError as error:
            return error.problem.status, error.problem.code
        return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])


GERMAN = json.dumps({"q": "Hallo", "source": "de", "target": "en"}).encode()
UNKNOWN = answering(b'{"error": "no such document"}', status=404)
