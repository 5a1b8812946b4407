"""Refusals of servers, as far as they say that nothing of a request was begun.

Owns which these are, in our own shape of error and in DeepL's, which has no code. Pure; what is
asked again is `service.router.pool`, and of whom `service.router.asking`.
"""

import json

from service.errors import draining
from service.phase import REFUSALS, Phase

_LEAVES = draining().problem
_CODES = frozenset({_LEAVES.code, "too_many_connections"} | {phase.value for phase in REFUSALS})
_MESSAGES = frozenset(
    {_LEAVES.message} | {REFUSALS[one] for one in (Phase.BOOTING, Phase.RESTARTING, Phase.FAILED)}
)
"""Without a code; that of an engine that is lost is also said of what was begun."""


def says_it_leaves(body: bytes) -> bool:
    """Whether a 503 says that its server leaves and has not begun the request.

    What was begun and is cut off has another code.
    """
    code, message = _told(body)
    return code == _LEAVES.code if code is not None else message == _LEAVES.message


def says_nothing_was_begun(body: bytes) -> bool:
    """Whether a 503 says that its server, as it is now, begins nothing."""
    code, message = _told(body)
    return code in _CODES if code is not None else message in _MESSAGES


def reason_in(body: bytes) -> str:
    """Why a server refuses, in its words; nothing where it says none of ours."""
    return _told(body)[1] or ""


def _told(body: bytes) -> tuple[str | None, str | None]:
    """The code and the message of an error; DeepL's has a message alone."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None, None
    if not isinstance(content, dict):
        return None, None
    if "code" in content:
        return str(content["code"]), str(content.get("error", ""))
    return None, str(content["message"]) if content.keys() == {"message"} else None
