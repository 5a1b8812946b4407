"""Ends of connections: which half closes when, and which requests are still answered.

Owns how long a client may take to read its answer or to leave, and what is sent last. When a
connection ends, and what of it is parsed, is `service.http.protocol`'s.

A client that has closed its own half is answered all the same. Whether it has gone altogether is
found out by an interim answer, which clients may ignore (RFC 9110, section 15.2); HTTP/1.0 has
none, so there it has the time to leave.

Bytes that arrive at a closed socket would reset it, and the client might never see the answer. So
where something may still come, only our own half is closed at first.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from service.errors import Problem
from service.http.backlog import Backlog, ReadFlow
from service.http.disconnect import hangup_of
from service.http.hangups import has_hung_up, num_unread_bytes
from service.http.headers import SECURITY_HEADERS
from service.http.replies import error_reply

if TYPE_CHECKING:
    from starlette.types import Scope
    from uvicorn._types import ASGI3Application

LEAVE_SECONDS = 5.0
"""Time for a client to take its last answer, or to finish a body that was answered already."""
WRITE_SECONDS = 120.0
"""Time for a client to read `MIN_READ_BYTES` of an answer that waits for it, or its end."""
MIN_READ_BYTES = 2**16
"""What counts is what the client's system has acknowledged. Where its buffer was full that comes in
steps, each when a sixteenth of the buffer and more is free again: measured on Linux 100 KB with the
buffer that a connection begins with, half a MB with the 5 MB that fast reading grows it to by
default. Whoever reads such a step in `WRITE_SECONDS` stays: 4 KiB/s there. Where tcp_rmem allows
32 MiB it is 2 MiB, and 18 KiB/s."""
_NUM_LOOKS = 4  # in `WRITE_SECONDS`
_LAST_LEAVE_SECONDS = 1.0  # when the server itself leaves
_LAST_HEAD_SECONDS = 0.1  # likewise: what was accepted just now has its first request on the way
_INTERIM = b"HTTP/1.1 100 "
_FIRST_POLL_SECONDS = 0.05  # most requests are answered by then
_MAX_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WireLimits:
    """Limits of a connection before it has a request, and at its end.

    Attributes:
        max_header_bytes: Of the request line and the headers, trailers included.
        header_timeout_seconds: Time for them to arrive.
        max_connections: Connections open at once.
        leave_seconds: As `LEAVE_SECONDS`.
        write_seconds: As `WRITE_SECONDS`.
    """

    max_header_bytes: int
    header_timeout_seconds: float
    max_connections: int
    leave_seconds: float = LEAVE_SECONDS
    write_seconds: float = WRITE_SECONDS


class Timer:
    """Timer of one scheduled call, or of none."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    def __bool__(self) -> bool:
        return self._handle is not None

    def start(self, seconds: float, callback: Callable[[], None]) -> None:
        """Schedule a call in place of the last one."""
        self.stop()
        self._handle = self._loop.call_later(seconds, callback)

    def stop(self) -> None:
        """Cancel the call."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


class EndingProtocol(HttpToolsProtocol):
    """Protocol of one connection, as far as its end.

    Args:
        limits: Of all connections; the rest is uvicorn's.
    """

    def __init__(
        self,
        limits: WireLimits,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = limits
        self._head_timer = Timer(self.loop)
        self._write_timer = Timer(self.loop)
        self._leave_timer = Timer(self.loop)
        self._poll_timer = Timer(self.loop)
        self._poll_seconds = _FIRST_POLL_SECONDS
        self._backlog = Backlog()
        self._started: RequestResponseCycle | None = None
        self._awaits_head = True
        self._has_eof = False
        self._has_rest = False
        self._is_probed = False
        self._is_leaving = False
        self._is_lingering = False

    def connection_made(  # type: ignore[override]  # uvicorn narrows it too
        self, transport: asyncio.Transport
    ) -> None:
        """Take the connection."""
        super().connection_made(transport)
        self.flow: ReadFlow = ReadFlow(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop every timer, and mark the request in flight as disconnected."""
        self._is_leaving = True
        self._backlog.clear()
        for timer in (self._head_timer, self._write_timer, self._leave_timer, self._poll_timer):
            timer.stop()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)  # it tells the latest request, which may wait behind another
        if self._started is not None and not self._started.response_complete:
            self._disconnect(self._started)

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's never keeps it
        """Take note that the client has closed its half; whether an answer is still due."""
        self._has_eof = True
        self.flow.end()
        return bool(self._backlog) or self._is_worth_keeping()

    def shutdown(self) -> None:
        """Make the request in flight the connection's last, as the server leaves."""
        if self._is_lingering:
            seconds = min(_LAST_LEAVE_SECONDS, self._limits.leave_seconds)
            self._leave_timer.start(seconds, self.transport.abort)
            return
        if self._started is None and not self._is_leaving:
            self._leave_timer.start(_LAST_HEAD_SECONDS, self.transport.close)
            return
        super().shutdown()
        if self._awaits_head:
            self._is_leaving = True
            self._has_rest = bool(self._backlog)
            self._backlog.clear()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has been idle."""
        self._close()

    def pause_writing(self) -> None:
        """Expect the client to read on."""
        super().pause_writing()
        self._expect_reading(self._write_timer)

    def resume_writing(self) -> None:
        """Expect nothing more: the client has read on."""
        super().resume_writing()
        self._write_timer.stop()

    def end_answer(self) -> None:
        """Close after the last answer, which is written or broken off."""
        started = self._started
        is_whole = started is not None and started.response_complete
        has_rest = self._has_rest or not self._awaits_head or bool(self._backlog)
        if is_whole and has_rest and not self.transport.is_closing():
            self._linger()
        else:
            self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: "ASGI3Application") -> None:
        self._started = cycle
        super()._start_asgi_task(cycle, app)

    def _disconnect(self, cycle: RequestResponseCycle) -> None:
        """Notify a request, in whichever form it waits, of its client's disconnect."""
        cycle.disconnected = True
        cycle.message_event.set()
        if hangup := hangup_of(cast("Scope", cycle.scope)):
            hangup.notify()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _may_go(self) -> bool:
        """Whether no answer is due, so that a newer connection may have its place."""
        if self._is_lingering:
            return self._has_last_answer
        return not (self._is_answering or self._is_leaving)

    @property
    def _has_last_answer(self) -> bool:
        """Whether its last answer is written, and only what its client still does is waited for."""
        is_written = not self.transport.get_write_buffer_size()
        return is_written and (self._is_lingering or not self._awaits_head)

    def _is_worth_keeping(self) -> bool:
        """Whether an answer is due to a client that sends no more; it is the last."""
        if self._is_leaving or not self._awaits_head or not self._is_answering:
            return False
        self.cycle.keep_alive = False
        self._watch()
        return True

    def _poll(self) -> None:
        """Poll for the disconnect of a client that nothing is read from."""
        if has_hung_up(self.transport):
            self.transport.abort()
            return
        if self.flow.is_held or (self._has_eof and not self._is_probed):
            self._ask()
        if self._has_eof or self.flow.is_held:
            self._poll_seconds = min(2 * self._poll_seconds, _MAX_POLL_SECONDS)
            self._watch()

    def _watch(self) -> None:
        """Schedule the next check of whether a client that nothing is read from is still there."""
        self._poll_timer.start(self._poll_seconds, self._poll)

    def _ask(self) -> None:
        """Probe the client with an interim answer, which is reset after a disconnect."""
        self._is_probed = self._has_eof
        started = self._started
        if started is None or started.response_started:
            return
        if started.scope["http_version"] == "1.1":
            self.transport.write(_INTERIM + b"Continue\r\n\r\n")
        elif self._has_eof:
            self._leave_timer.start(self._limits.leave_seconds, self.transport.abort)

    def _linger(self) -> None:
        """Close our own half, and drop what comes until the client closes its own."""
        self._is_leaving = self._is_lingering = True
        self._head_timer.stop()
        self._backlog.clear()
        self.flow.release()
        self.flow.resume_reading()
        if self._has_eof:
            self.transport.close()
            return
        is_written = not self.transport.get_write_buffer_size()
        self.transport.write_eof()
        if is_written:
            self._leave_timer.start(self._limits.leave_seconds, self.transport.abort)
        else:
            self._expect_reading(self._leave_timer)

    def _close(self) -> None:
        """Close when everything is written, or when the client reads next to nothing of it."""
        self._is_leaving = True
        self._head_timer.stop()
        self.transport.close()
        self._expect_reading(self._leave_timer)

    def _expect_reading(self, timer: Timer) -> None:
        """Look again and again whether the client reads what waits for it, and leave if not.

        One look says little: what has been read is told in steps. It is left when so many in a row
        have seen too little in all. Who has read everything has the time to leave by itself.
        """
        num_unread, num_looks = num_unread_bytes(self.transport), 0
        seconds = self._limits.write_seconds / _NUM_LOOKS

        def look() -> None:
            nonlocal num_unread, num_looks
            num_unread_now = num_unread_bytes(self.transport)
            num_looks += 1
            if not num_unread_now:
                timer.start(self._limits.leave_seconds, self.transport.abort)
                return
            if num_unread - num_unread_now >= MIN_READ_BYTES:
                num_unread, num_looks = num_unread_now, 0
            elif num_looks == _NUM_LOOKS:
                self.transport.abort()
                return
            timer.start(seconds, look)

        timer.start(seconds, look)

    def _write_problem(self, problem: Problem) -> None:
        """Answer without an application, as there is no request for one."""
        reply = error_reply(problem, {**SECURITY_HEADERS, "connection": "close"})
        headers = b"".join(b"%s: %s\r\n" % pair for pair in reply.raw_headers)
        line = f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n"
        self.transport.write(line.encode() + headers + b"\r\n" + bytes(reply.body))


class AnswerTransport:
    """Transport of one answer; how it closes is the connection's decision.

    An answer's first write is its head. It is held until the next one, which is usually the body
    and comes at once, so that both are one system call and one packet; else until the event loop's
    next turn. An interim answer is no head and goes at once: the answer itself may be written past
    this one (`service.http.whole`).

    Args:
        connection: Where it is written.
        has_body: Whether anything follows the head, as nothing does where HEAD was asked.
    """

    def __init__(self, connection: EndingProtocol, *, has_body: bool) -> None:
        self._connection = connection
        self._is_begun = not has_body
        self._head = b""
        self._flush: asyncio.Handle | None = None

    def write(self, data: bytes) -> None:
        """Write a part of the answer."""
        if not self._is_begun and not data.startswith(_INTERIM):
            self._is_begun = True
            self._head = data
            self._flush = self._connection.loop.call_soon(self._write_head)
            return
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
            data = self._head + data
        self._connection.transport.write(data)

    def is_closing(self) -> bool:
        """Whether the connection is closing."""
        return self._connection.transport.is_closing()

    def close(self) -> None:
        """End the answer; the connection decides how it closes."""
        if self._flush is not None:
            self._flush.cancel()
            self._write_head()
        self._connection.end_answer()

    def _write_head(self) -> None:
        self._flush = None
        if not self._connection.transport.is_closing():
            self._connection.transport.write(self._head)
