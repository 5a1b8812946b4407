"""Table from the error tree to the wire: which problem an error is answered with.

Owns the table, and that an error which is not in it says nothing of the request. What a problem is,
and the refusals that carry one already, are `service.errors`; rendering is `service.http.replies`.
"""

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
    RequestError,
    cut_off,
    invalid,
    overloaded,
    scalar,
    unavailable,
)


def problem_of(error: Exception) -> Problem:
    """How `error` is answered: the whole table, most specific first.

    Anything that is not in it is a fault of ours: a 500 that says nothing about the request.
    """
    match error:
        case RequestError():
            problem = error.problem
        case ClientGoneError():
            problem = Problem(status=499, code="client_gone", message="the client has gone")
        case QueueFullError():
            problem = overloaded(
                f"Slowdown: {error.value} segments would be waiting; the limit is {error.limit}",
                value=error.value,
                limit=error.limit,
                seconds=error.retry_after_seconds,
            ).problem
        case EngineClosedError():
            problem = cut_off().problem
        case EngineUnavailableError():
            problem = unavailable(
                "the translation engine is not running", code="engine_unavailable"
            ).problem
        case SegmentFailedError():
            problem = Problem(status=500, code=error.code, message="the translation failed")
        case InputError():
            problem = invalid(
                str(error), value=scalar(error.value), limit=scalar(error.limit)
            ).problem
        case HTTPException():
            problem = _http_problem(error)
        case _:
            problem = Problem(status=500, code="internal", message="internal error")
    return problem


_HTTP_PROBLEMS = {
    404: ("not_found", "there is nothing at this path"),
    405: ("method_not_allowed", "this path does not have this method"),
}


def _http_problem(error: HTTPException) -> Problem:
    code, message = _HTTP_PROBLEMS.get(error.status_code, ("http_error", str(error.detail)))
    return Problem(status=error.status_code, code=code, message=message)
