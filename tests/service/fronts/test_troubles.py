"""Errors that cross between the processes of a server."""

import msgspec
import pytest

from model.errors import InputError
from service.engine.errors import (
    EngineClosedError,
    EngineUnavailableError,
    QueueFullError,
    SegmentFailedError,
)
from service.errors import conflict, deadline_exceeded, overloaded, too_long
from service.fronts.messages import Trouble
from service.fronts.troubles import error_of, trouble_of
from service.http.problems import problem_of

ERRORS = [
    overloaded("too much", value=3, limit=2, seconds=1.5),
    too_long("too long", value="x", limit=None),
    conflict("no", code="reload_running"),
    deadline_exceeded(seconds=2.5),
    QueueFullError(value=9, limit=8, retry_after_seconds=2.0),
    EngineUnavailableError("the engine is gone"),
    EngineClosedError(),
    SegmentFailedError(code="engine_error", message="it failed"),
    InputError("a beam of 99", value=99, limit=16),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_answered_alike_on_either_side(error: Exception) -> None:
    sent = msgspec.msgpack.encode(trouble_of(error))
    came = error_of(msgspec.msgpack.decode(sent, type=Trouble))
    assert type(came) is type(error)
    assert problem_of(came) == problem_of(error)


def test_a_fault_of_ours_says_nothing_of_a_text() -> None:
    came = error_of(trouble_of(KeyError("somebody's text")))
    assert "somebody" not in str(came)
    assert problem_of(came).status == 500
