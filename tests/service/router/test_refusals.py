"""Which refusals say that nothing of a request was begun."""

import json

import pytest

from service.errors import cut_off, draining, unavailable
from service.http.replies import error_content
from service.phase import REFUSALS, Phase
from service.router.refusals import reason_in, says_it_leaves, says_nothing_was_begun

LOST = unavailable(REFUSALS[Phase.LOST], code="engine_unavailable")


def _own(code: str, message: str = "no") -> bytes:
    return json.dumps(error_content(unavailable(message, code=code).problem)).encode()


def _deepl(message: str) -> bytes:
    return json.dumps({"message": message}).encode()


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.READY])
def test_a_server_that_is_not_ready_has_begun_nothing(phase: Phase) -> None:
    body = _own(phase.value, REFUSALS[phase])
    assert says_nothing_was_begun(body)
    assert says_it_leaves(body) == (phase is Phase.DRAINING)
    assert reason_in(body) == REFUSALS[phase]
    is_told = says_nothing_was_begun(_deepl(REFUSALS[phase]))
    assert is_told == (phase is not Phase.LOST), "DeepL's errors say it of what was begun too"


def test_a_connection_that_is_refused_has_begun_nothing() -> None:
    assert says_nothing_was_begun(_own("too_many_connections"))


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(error_content(cut_off().problem)).encode(),
        json.dumps(error_content(LOST.problem)).encode(),
        _deepl(cut_off().problem.message),
        _own("other", draining().problem.message),
        b"<p>the server is shutting down</p>",
        b'["the server is shutting down"]',
        b"",
        b"[" * 50_000,
    ],
)
def test_what_may_have_been_begun_is_told_apart(body: bytes) -> None:
    assert not says_it_leaves(body)
    assert not says_nothing_was_begun(body)
