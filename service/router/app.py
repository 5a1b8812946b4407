"""Application of the router: which paths it has, and whom each is asked of.

Owns the table of paths. A translation goes to the group of its languages; a list is that of all
groups; what has an id is asked of each group until one knows it; anything else is the same in every
group. What a group refuses is answered as it says it: keys, limits and values are the groups'.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType

from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from model.errors import DragomanError
from service.api.deepl.reply import error_reply_at
from service.errors import Problem, RequestError, unavailable
from service.http.middleware import note_problem
from service.http.replies import JsonReply
from service.router.dispatch import Dispatcher
from service.router.groups import NOT_REACHED
from service.router.wording import OF_DOCUMENTS, OF_TEXTS
from service.telemetry.request_context import context_of

Handler = Callable[[Request], Awaitable[Response]]

_ANY = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

LANGUAGE_LISTS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "/languages": ("GET", "POST"),
        "/v1/models": ("GET",),
        "/v2/languages": ("GET", "POST"),
        "/v3/languages": ("GET",),
        "/v2/glossary-language-pairs": ("GET",),
    }
)
"""Lists of what the groups that answer have."""
COMPLETE_LISTS: Mapping[str, Sequence[str]] = MappingProxyType(
    {"/v2/glossaries": ("GET",), "/v3/glossaries": ("GET",), "/v2/usage": ("GET", "POST")}
)
"""Lists of what is kept for a caller: without one of the groups they would not be whole."""
BY_ID: Sequence[str] = (
    "/v1/documents/{id}",
    "/v1/documents/{id}/result",
    "/v2/document/{id}",
    "/v2/document/{id}/result",
    "/download_file/{name}",
    "/v2/glossaries/{id}",
    "/v2/glossaries/{id}/entries",
    "/v3/glossaries/{id}",
    "/v3/glossaries/{id}/entries",
    "/v3/glossaries/{id}/dictionaries",
)
"""What one of the groups keeps, by its id."""
OF_ONE_GROUP: Sequence[str] = (
    "/admin/{rest:path}",
    "/v1/models/{name:path}/load",
    "/v1/models/{name:path}/unload",
)
"""What a group is administered by, at its own address."""


def build_routes(dispatcher: Dispatcher, render_metrics: Callable[[], bytes]) -> list[Route]:
    """All paths, the first that matches first.

    Args:
        dispatcher: What asks the groups.
        render_metrics: The page of `/metrics`.
    """
    return [
        *_probes(dispatcher, render_metrics),
        *(Route(path, dispatcher.translate, methods=["POST"]) for path in OF_TEXTS),
        *(Route(path, dispatcher.upload, methods=["POST"]) for path in OF_DOCUMENTS),
        Route("/detect", dispatcher.detect, methods=["POST"]),
        Route("/v2/glossaries", dispatcher.new_glossary, methods=["POST"]),
        Route("/v3/glossaries", dispatcher.new_glossary, methods=["POST"]),
        *(
            Route(path, dispatcher.joined_list, methods=list(how))
            for path, how in LANGUAGE_LISTS.items()
        ),
        *(
            Route(path, dispatcher.complete_list, methods=list(how))
            for path, how in COMPLETE_LISTS.items()
        ),
        *(Route(path, dispatcher.by_id, methods=list(_ANY)) for path in BY_ID),
        *(Route(path, _of_one_group, methods=list(_ANY)) for path in OF_ONE_GROUP),
        Route("/{rest:path}", dispatcher.from_any, methods=list(_ANY)),
    ]


def build_app(routes: Sequence[Route]) -> ASGIApp:
    """An application of these paths, which answers what was foreseen; all else is the edge's."""
    handlers = {DragomanError: _answer_error, HTTPException: _answer_error}
    app = ExceptionMiddleware(Router(routes, redirect_slashes=False), handlers=handlers)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = answer  # without one Starlette answers a 404 and a 405 in words of its own
        await app(scope, receive, send)

    return answer


def _probes(dispatcher: Dispatcher, render_metrics: Callable[[], bytes]) -> list[Route]:
    async def live(_request: Request) -> Response:
        return JsonReply({"status": "ok"})

    async def ready(_request: Request) -> Response:
        dispatcher.arrivals.check_open()
        if not dispatcher.directory.up:
            raise unavailable("no group of servers is ready", code=NOT_REACHED)
        return JsonReply({"status": "ok"})

    async def health(_request: Request) -> Response:
        groups = [
            {
                "name": group.name,
                "is_up": group.is_up,
                "problem": group.problem,
                "checkpoints": [offer.name for offer in group.offers],
                "languages": list(group.table.all.languages),
            }
            for group in dispatcher.directory.groups
        ]
        status = 200 if dispatcher.directory.up else 503
        is_whole = len(dispatcher.directory.up) == len(groups)
        word = "ok" if is_whole else "partial" if status == 200 else "unavailable"
        return JsonReply({"status": word, "groups": groups}, status)

    async def metrics(_request: Request) -> Response:
        return Response(render_metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return [
        Route("/livez", live),
        Route("/readyz", ready),
        Route("/health", ready),
        Route("/v1/health", health),
        Route("/metrics", metrics),
    ]


async def _of_one_group(_request: Request) -> Response:
    raise RequestError(
        Problem(
            status=404,
            code="not_routed",
            message="a router administers nothing: ask each server of a group, as `dragoman reload`"
            " does",
        )
    )


async def _answer_error(request: Request, error: Exception) -> Response:
    problem = note_problem(context_of(request), error)
    headers = error.headers if isinstance(error, HTTPException) else None
    return error_reply_at(request.scope["path"], problem, headers)
