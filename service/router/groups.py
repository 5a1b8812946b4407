"""Groups of servers as operators name them, and what is answered where one does not.

Owns `NAME=URL` and the refusals that name a group. What a group translates is
`service.router.directory`.
"""

import os
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from model.errors import ConfigError, DragomanError
from service.errors import RETRY_AFTER_SECONDS, Problem, RequestError, unavailable

MAX_GROUPS = 64
NOT_REACHED = "group_unavailable"
"""Code of the refusal where nothing of a request was sent."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Servers that all have the same checkpoints, behind one name or address.

    Attributes:
        name: By which people know them.
        host: Name or address; each address of a name is one of the servers, or leads to them.
        port: Of all of them.
    """

    name: str
    host: str
    port: int


class ConnectError(DragomanError):
    """No server of a group could be reached: nothing of the request was sent."""


class RefusedError(ConnectError):
    """Said at once: there is no server at an address."""


class LostError(DragomanError):
    """A server ended its connection, or was silent, before its answer was there."""


class SilentError(LostError):
    """A server was silent for as long as was waited; it may go on yet."""


def reason_of(error: OSError) -> str:
    """Why the system refused, in its own words: event loops have words of their own."""
    if isinstance(error, socket.gaierror) or not error.errno:
        return error.strerror or type(error).__name__
    return os.strerror(error.errno)


def parse_groups(given: Iterable[str]) -> tuple[Group, ...]:
    """The groups that are given, in order.

    Args:
        given: Each `NAME=URL`.

    Raises:
        ConfigError: One of them is none, a name comes twice, or there are none or too many.
    """
    groups = [_parse(text) for text in given]
    if not groups:
        raise ConfigError("there is no group; give at least one as --group NAME=URL")
    if len(groups) > MAX_GROUPS:
        raise ConfigError(f"there are {len(groups)} groups; the limit is {MAX_GROUPS}")
    for place, group in enumerate(groups):
        if any(group.name == other.name for other in groups[:place]):
            raise ConfigError(f"group {group.name} is given twice")
    return tuple(groups)


def _parse(text: str) -> Group:
    name, _, url = text.partition("=")
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{text!r} is no group such as europe=http://europe:8000: a name has small letters,"
            " digits and hyphens"
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    is_plain = parts.path in ("", "/") and not parts.query and not parts.fragment if host else False
    if not host or parts.scheme != "http" or not is_plain or parts.username is not None:
        raise ConfigError(
            f"the URL of group {name} is {url!r}; it must be http://HOST:PORT, without a path"
        )
    return Group(name=name, host=host, port=port or 80)


def group_unavailable(names: Iterable[str], reason: str) -> RequestError:
    """A 503: what is asked for is some groups' alone, and they were not reached."""
    listed = ", ".join(names)
    noun = "groups" if ", " in listed else "group"
    return unavailable(f"{noun} {listed} cannot be reached: {reason}", code=NOT_REACHED)


def group_lost(name: str, reason: str) -> RequestError:
    """A 502: a group had the request and gave no whole answer; it may have done it."""
    return RequestError(
        Problem(
            status=502,
            code="group_lost",
            message=f"group {name} gave no answer: {reason}",
            value=name,
            retry_after_seconds=RETRY_AFTER_SECONDS,
        )
    )
