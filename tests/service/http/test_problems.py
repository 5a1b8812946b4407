import pytest
from starlette.exceptions import HTTPException

from model.errors import InputError
from service.engine.errors import (
    EngineClosedError,
    EngineUnavailableError,
    QueueFullError,
    SegmentFailedError,
)
from service.errors import (
    ClientGoneError,
    Problem,
    body_timeout,
    deadline_exceeded,
    invalid,
    overloaded,
    too_long,
    unavailable,
    unsupported_language,
)
from service.http.problems import problem_of


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (invalid("x"), 400, "invalid_request"),
        (unsupported_language("x", value="zz", limit="en"), 400, "unsupported_language"),
        (body_timeout(seconds=1), 408, "body_timeout"),
        (too_long("x", value=2, limit=1), 413, "too_long"),
        (overloaded("x", value=2, limit=1, seconds=3), 429, "overloaded"),
        (ClientGoneError(), 499, "client_gone"),
        (unavailable("x"), 503, "unavailable"),
        (deadline_exceeded(seconds=1), 504, "deadline_exceeded"),
        (InputError("x", value=1, limit=2), 400, "invalid_request"),
        (QueueFullError(value=9, limit=8, retry_after_seconds=2.5), 429, "overloaded"),
        (EngineUnavailableError("gone"), 503, "engine_unavailable"),
        (EngineClosedError(), 503, "cut_off"),
        (SegmentFailedError(code="engine_error", message="boom"), 500, "engine_error"),
        (HTTPException(404), 404, "not_found"),
        (HTTPException(405), 405, "method_not_allowed"),
        (HTTPException(418, "teapot"), 418, "http_error"),
        (ZeroDivisionError(), 500, "internal"),
    ],
)
def test_every_error_has_its_status_and_code(error: Exception, status: int, code: str) -> None:
    problem = problem_of(error)
    assert (problem.status, problem.code) == (status, code)


def test_an_unexpected_error_says_nothing_of_itself() -> None:
    assert "secret" not in problem_of(ValueError("secret")).message


def test_a_full_queue_names_value_limit_and_when_to_come_back() -> None:
    problem = problem_of(QueueFullError(value=9, limit=8, retry_after_seconds=2.5))
    assert problem == Problem(
        status=429,
        code="overloaded",
        message="Slowdown: 9 segments would be waiting; the limit is 8",
        value=9,
        limit=8,
        retry_after_seconds=2.5,
    )


def test_503_always_says_when_to_come_back() -> None:
    for error in (unavailable("x"), EngineUnavailableError("gone")):
        assert problem_of(error).retry_after_seconds == 5.0
