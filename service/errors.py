"""Errors that a request is answered with on purpose: status, code, message, value and limit.

Owns `Problem`, which is one error as a client sees it, and a constructor for each refusal; a text
is named by its length, never quoted. The table from all other errors to a problem is
`service.http.problems`; rendering is `service.http.replies`.
"""

from dataclasses import dataclass

from model.errors import DragomanError

Scalar = str | int | float | bool | None

RETRY_AFTER_SECONDS = 5.0
IDENTITY = "identity"
"""The content encoding of a body that is as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One error as a client sees it.

    Attributes:
        status: HTTP status.
        code: A stable name for programs, `lower_snake_case`.
        message: One sentence for people, with the value and the limit.
        value: What was wrong; for a text its length.
        limit: What would have been accepted.
        retry_after_seconds: When to come back; None when coming back does not help.
    """

    status: int
    code: str
    message: str
    value: Scalar = None
    limit: Scalar = None
    retry_after_seconds: float | None = None


class RequestError(DragomanError):
    """A request that is answered with an error on purpose."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.message)


class ClientGoneError(DragomanError):
    """The client closed its connection before the answer was there."""


def invalid(message: str, *, value: Scalar = None, limit: Scalar = None) -> RequestError:
    """A 400: the request can never be answered as it is."""
    return RequestError(
        Problem(status=400, code="invalid_request", message=message, value=value, limit=limit)
    )


def unsupported_language(message: str, *, value: Scalar, limit: Scalar) -> RequestError:
    """A 400: a language or a pair of languages is not loaded."""
    return RequestError(
        Problem(
            status=400,
            code="unsupported_language",
            message=message,
            value=value,
            limit=limit,
        )
    )


def unknown_model(message: str, *, value: Scalar, limit: Scalar) -> RequestError:
    """A 400: there is no checkpoint of this name, or it does not translate these languages."""
    return RequestError(
        Problem(status=400, code="unknown_model", message=message, value=value, limit=limit)
    )


def too_long(message: str, *, value: Scalar, limit: Scalar) -> RequestError:
    """A 413: too many bytes, texts, characters or segments."""
    return RequestError(
        Problem(status=413, code="too_long", message=message, value=value, limit=limit)
    )


def unsupported_encoding(encoding: Scalar) -> RequestError:
    """A 415: the body is compressed, or otherwise not as it is."""
    shown = encoding if isinstance(encoding, str) else "one that is not known"
    return RequestError(
        Problem(
            status=415,
            code="unsupported_encoding",
            message=f"the content encoding is {shown}; it must be {IDENTITY}",
            value=encoding,
            limit=IDENTITY,
        )
    )


def invalid_markup(kind: str, problem: str) -> RequestError:
    """A 400: a text is not in the notation that it is said to be in."""
    message = f"a text {problem}"
    return RequestError(
        Problem(status=400, code="invalid_markup", message=message, value=kind, limit=kind)
    )


def body_timeout(*, seconds: float) -> RequestError:
    """A 408: the body did not arrive in time."""
    return RequestError(
        Problem(
            status=408,
            code="body_timeout",
            message=f"the body was not complete after {seconds:g} seconds",
            limit=seconds,
        )
    )


def overloaded(message: str, *, value: Scalar, limit: Scalar, seconds: float) -> RequestError:
    """A 429: right, but not now."""
    return RequestError(
        Problem(
            status=429,
            code="overloaded",
            message=message,
            value=value,
            limit=limit,
            retry_after_seconds=seconds,
        )
    )


def unavailable(message: str, *, code: str = "unavailable") -> RequestError:
    """A 503: booting, shutting down, or without an engine."""
    return RequestError(
        Problem(
            status=503,
            code=code,
            message=message,
            retry_after_seconds=RETRY_AFTER_SECONDS,
        )
    )


def draining() -> RequestError:
    """A 503: the server leaves, and this had not been accepted."""
    return unavailable("the server is shutting down", code="draining")


def cut_off() -> RequestError:
    """A 503: the server has left before the work was done; what it did of it is not known."""
    return unavailable("the server left before this was finished", code="cut_off")


def no_such_model(name: str) -> RequestError:
    """A 404: nothing that could be loaded has this name."""
    value = scalar(name)
    shown = f"model {value}" if isinstance(value, str) else "this model"
    return RequestError(
        Problem(status=404, code="unknown_model", message=f"there is no {shown}", value=value)
    )


def conflict(message: str, *, code: str) -> RequestError:
    """A 409: something else is being done that excludes it."""
    return RequestError(Problem(status=409, code=code, message=message))


def reload_failed(message: str) -> RequestError:
    """A 409: the new checkpoints cannot be served; the old ones still are."""
    return conflict(message, code="reload_failed")


def deadline_exceeded(*, seconds: float) -> RequestError:
    """A 504: not finished within the request's own time; its work was dropped."""
    return RequestError(
        Problem(
            status=504,
            code="deadline_exceeded",
            message=f"the translation was not finished after {seconds:g} seconds",
            limit=seconds,
        )
    )


def scalar(value: object) -> Scalar:
    """`value` if JSON can carry it as it is, else its length or None."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if len(value) <= 40 and value.isascii() and value.isprintable() else len(value)
    return None
