"""Reload of every server that a name stands for, as the pods behind a headless Service.

Owns which addresses these are, what each answers to `POST /admin/reload`, and when it is asked
again. Flags and what is printed are `service.cli.server.reload`; what a reload is, is
`service.front`.
"""

import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

from model.errors import DragomanError, one_line

PATH = "/admin/reload"
RETRY_SECONDS = 1.0
"""Between two tries of a server that starts, or that reloads already."""

_MAX_REPLY_BYTES = 2**20
_TRANSIENT = frozenset({"reload_running", "booting", "restarting"})
"""Codes of refusals that pass; a reload that is running may have begun before the change."""
_DRAINING = "draining"
_NO_ADDRESS = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})
"""Of a look-up: it was answered, and there is none; every other error leaves that open."""

Resolve = Callable[[Sequence[str]], list[str]]


class FleetError(DragomanError):
    """No server is there, or not all of them serve what they should."""


class LookupFailedError(FleetError):
    """Which addresses a name has could not be found out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Outcome of one server's reload.

    Attributes:
        address: Of the server.
        checkpoints: Names of what it serves now; None where it was not reloaded.
        faulty: Checkpoints that it could not load, with the reasons.
        problem: Why it was not reloaded.
        has_left: It is not there any more, or about to leave, so it need not be.
    """

    address: str
    checkpoints: tuple[str, ...] | None = None
    faulty: tuple[str, ...] = ()
    problem: str = ""
    has_left: bool = False

    @property
    def is_good(self) -> bool:
        """Whether nothing old is served there."""
        return self.has_left or (self.checkpoints is not None and not self.faulty)


def addresses_of(names: Sequence[str]) -> list[str]:
    """All addresses of some names, each once; names that have none yield nothing.

    Raises:
        LookupFailedError: Of a name nobody says now whether it has any.
    """
    found: dict[str, None] = {}
    for name in names:
        try:
            entries = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except UnicodeError:
            continue
        except socket.gaierror as error:
            if error.errno in _NO_ADDRESS:
                continue
            problem = error.strerror or str(error)
            raise LookupFailedError(f"the addresses of {name} are not known: {problem}") from error
        found.update((str(entry[4][0]), None) for entry in entries)
    return list(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Servers by their names.

    Attributes:
        names: Host names, of which every address is a server, or addresses.
        port: Of all of them.
        key: An administrator's API key.
        seconds: How long each server may take, and each look-up of the names.
        resolve: Finds the addresses of the names.
        clock: Seconds, monotonic.
        sleep: Waits for some seconds.
    """

    names: tuple[str, ...]
    port: int
    key: str
    seconds: float
    resolve: Resolve = addresses_of
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def reload(self, *, at_once: int) -> Iterator[Outcome]:
        """Reload all, and those that come meanwhile; each outcome as it is known.

        Args:
            at_once: Servers that are reloaded at the same time.

        Raises:
            FleetError: The names have no address, or it cannot be found out in time which.
        """
        known: set[str] = set()
        while fresh := [each for each in self._addresses() if each not in known]:
            known.update(fresh)
            with ThreadPoolExecutor(at_once) as threads:
                tasks = [threads.submit(self._reload, address) for address in fresh]
                try:
                    for task in as_completed(tasks):
                        yield task.result()
                finally:
                    threads.shutdown(wait=False, cancel_futures=True)
        if not known:
            raise FleetError(f"there is no address of {', '.join(self.names)}")

    def _addresses(self) -> list[str]:
        """All addresses there are now.

        Raises:
            LookupFailedError: No look-up found them out in time.
        """
        deadline = self.clock() + self.seconds
        while True:
            try:
                return self.resolve(self.names)
            except LookupFailedError:
                if self.clock() + RETRY_SECONDS > deadline:
                    raise
            self.sleep(RETRY_SECONDS)

    def _has_left(self, address: str) -> bool:
        """Whether an address is surely no server's any more."""
        try:
            return address not in self.resolve(self.names)
        except LookupFailedError:
            return False

    def _reload(self, address: str) -> Outcome:
        """Ask one server until its answer is final, or its time is over."""
        deadline = self.clock() + self.seconds
        while True:
            outcome, is_final = self._ask(address, seconds=max(deadline - self.clock(), 1.0))
            if is_final:
                return outcome
            if self._has_left(address):
                return Outcome(address=address, has_left=True)
            if self.clock() + RETRY_SECONDS > deadline:
                return outcome
            self.sleep(RETRY_SECONDS)

    def _ask(self, address: str, *, seconds: float) -> tuple[Outcome, bool]:
        """One request, and whether its answer is final."""
        connection = HTTPConnection(address, self.port, timeout=seconds)
        try:
            connection.request("POST", PATH, headers={"Authorization": f"Bearer {self.key}"})
            reply = connection.getresponse()
            body = reply.read(_MAX_REPLY_BYTES)
        except (OSError, HTTPException) as error:
            problem = one_line(str(error) or type(error).__name__)
            return Outcome(address=address, problem=problem), False
        finally:
            connection.close()
        return _outcome(address, reply.status, body)


def common_problem(outcomes: Sequence[Outcome]) -> str:
    """What is wrong with the servers together; nothing where all serve the same new checkpoints."""
    num_bad = sum(not outcome.is_good for outcome in outcomes)
    if num_bad:
        return f"{num_bad} of {len(outcomes)} servers do not serve the new checkpoints"
    served = {frozenset(one.checkpoints) for one in outcomes if one.checkpoints is not None}
    return "the servers have different checkpoints" if len(served) > 1 else ""


def _outcome(address: str, status: int, body: bytes) -> tuple[Outcome, bool]:
    """What an answer means, and whether it is final."""
    try:
        reply = json.loads(body)
        if status == 200:
            faults = [f"{one['directory']}: {one['reason']}" for one in reply["faulty"]]
            faulty = tuple(map(one_line, faults))
            names = tuple(one_line(str(name)) for name in reply["checkpoints"])
            return Outcome(address=address, checkpoints=names, faulty=faulty), True
        code, message = str(reply["code"]), one_line(str(reply["error"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        problem = f"status {status}, and not the answer of this server"
        return Outcome(address=address, problem=problem), True
    if code == _DRAINING:
        return Outcome(address=address, has_left=True), True
    return Outcome(address=address, problem=f"status {status}: {message}"), code not in _TRANSIENT
