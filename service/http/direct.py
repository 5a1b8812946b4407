"""Direct dispatch to the endpoints of translation, past FastAPI's own routing.

Owns that a route whose endpoint takes the request as it came, and answers with a response, is
called without what FastAPI does around every endpoint: routers that are tried one after another,
exit stacks, dependencies, values to be parsed. FastAPI documents such a route like any other, and
answers whatever is not asked with its method and its exact path. Which routes are direct, their
routers say.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping

from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model.errors import DragomanError
from service.http.replies import JsonReply

Endpoint = Callable[[Request], Awaitable[Response]]
OnError = Callable[[Request, Exception], Awaitable[Response]]

ANSWERED = (DragomanError, HTTPException)
"""Errors that have an answer of their own; all others are the edge's."""


class DirectRoute(APIRoute):
    """Route of one plain path, whose endpoint takes a `Request` alone and returns a `Response`."""


def endpoints_of(routes: Iterable[BaseRoute]) -> dict[tuple[str, str], Endpoint]:
    """The endpoints of the direct ones among `routes`, by method and path."""
    return {
        (method, route.path): route.endpoint
        for route in routes
        if isinstance(route, DirectRoute)
        for method in route.methods or ()
    }


class DirectRoutes:
    """Middleware inside of all others: calls endpoints of direct routes, and passes on the rest.

    Args:
        app: What answers everything else.
        endpoints: By method and path.
        on_error: Makes the answer to one of `ANSWERED`.
    """

    def __init__(
        self, app: ASGIApp, *, endpoints: Mapping[tuple[str, str], Endpoint], on_error: OnError
    ) -> None:
        self._app = app
        self._endpoints = endpoints
        self._on_error = on_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        endpoint = None
        if scope["type"] == "http" and not scope.get("root_path"):
            endpoint = self._endpoints.get((scope["method"], scope["path"]))
        if endpoint is None:
            await self._app(scope, receive, send)
        else:
            await self._answer(endpoint, scope, receive, send)

    async def _answer(self, endpoint: Endpoint, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        try:
            response = await endpoint(request)
        except ANSWERED as error:
            response = await self._on_error(request, error)
        if isinstance(response, JsonReply):
            await response(scope, receive, send)
        else:
            await self._send_watched(response, request, send)

    async def _send_watched(self, response: Response, request: Request, send: Send) -> None:
        """Send what may still fail; before it has begun, that is answered like any error."""
        has_started = False

        async def send_and_watch(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await response(request.scope, request.receive, send_and_watch)
        except ANSWERED as error:
            if has_started:
                raise
            answer = await self._on_error(request, error)
            await answer(request.scope, request.receive, send)
