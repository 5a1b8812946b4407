"""Application: routes, error handlers and lifespan, put together from the front's parts.

Owns how the parts of the front are put together. `create_app` has no side effect; the engine
starts with the application's lifespan and leaves with it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, cast

from fastapi import APIRouter, FastAPI, Request
from prometheus_client import CollectorRegistry
from pydantic import SecretStr
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from service.access.access import Access, AccessPolicy, Counts, Limiter, key_required
from service.access.character_counts import CharacterCounts
from service.access.key_store import KeySources, KeyStore
from service.access.keys import KeyRing
from service.access.rates import RateLimiter
from service.api.admission import Admission
from service.api.deepl import documents as deepl_documents
from service.api.deepl import routes as deepl
from service.api.deepl.reply import error_reply_at, is_of_deepl
from service.api.detecting import undetected_source
from service.api.languages import NO_ALIASES, choose_route
from service.api.libretranslate import files as libretranslate_files
from service.api.libretranslate import routes as libretranslate
from service.api.operations import admin, docs, health, models
from service.api.receiving import Receiving
from service.api.v1 import documents as v1_documents
from service.api.v1 import routes as v1
from service.documents.jobs import JobOptions
from service.documents.opening import document_queue
from service.documents.queue import DocumentQueue
from service.documents.translating import Routes
from service.front import Front
from service.glossaries.keeping import Glossaries, glossaries_of
from service.http.body import BodyReader, BodyReaders
from service.http.cors import Cors
from service.http.direct import ANSWERED, DirectRoutes, Endpoint, endpoints_of
from service.http.middleware import Edge, note_problem
from service.http.other_methods import refusals
from service.models.requests.detection import LanguageDetection
from service.models.routes.routing import RoutingTable
from service.settings import Settings, load_settings
from service.telemetry.metrics import Metrics
from service.telemetry.request_context import context_of
from service.telemetry.tracing import open_tracing
from service.version import distribution_version
from service.web import routes as web

if TYPE_CHECKING:
    from service.telemetry.spans import Spans

_DESCRIPTION = """Neural translation with continuous batching and beam search.

`POST /translate` speaks LibreTranslate's contract, `POST /v2/translate` that of DeepL;
`POST /v1/translate` has every option. Every error is `{"error", "code", "value", "limit"}`, in
DeepL's contract `{"message"}`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """State of all front processes of a server, which one of them counts and keeps.

    Attributes:
        limiter: Counts what callers spend within a minute.
        counts: What they have translated since the start.
        glossaries: Those that they keep.
        close: Closes the limiter's connections.
    """

    limiter: Limiter
    counts: Counts
    glossaries: Glossaries
    close: Callable[[], Awaitable[None]]


class _Application(FastAPI):
    """FastAPI from our own outermost middleware on.

    Around it FastAPI has an answer to what was not answered, which the edge has, and telemetry and
    a limit of bodies, which are off: three calls a request that do nothing.
    """

    def build_middleware_stack(self) -> ASGIApp:
        """FastAPI's, without what stands around the outermost middleware of ours."""
        stack: object = super().build_middleware_stack()
        outermost: object = self.user_middleware[0].cls
        while type(stack) is not outermost:
            stack = vars(stack)["app"]
        return cast("ASGIApp", stack)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; everything else is FastAPI's."""
        if scope["type"] != "http" or self.middleware_stack is None or self.root_path:
            await super().__call__(scope, receive, send)
            return
        scope["app"] = self
        await self.middleware_stack(scope, receive, send)


def create_app(
    settings: Settings | None = None,
    *,
    front: Front | None = None,
    spans: "Spans | None" = None,
    shared: Shared | None = None,
    held_keys: KeyRing | None = None,
    has_fronts: bool = False,
    clock: Callable[[], float] = time.monotonic,
    new_request_id: Callable[[], str] = lambda: token_hex(16),
) -> FastAPI:
    """Build the application; `uvicorn --factory service.app:create_app` works too.

    Args:
        settings: Of the server; None reads the environment.
        front: What holds the engine; None makes one with a registry of its own, and spans where
            the settings ask for them.
        spans: What traces requests, if anything does; closed with the application. Those of
            segments are made where the front was given them.
        shared: What another process counts and keeps for this one too; None: all of it is here.
        held_keys: Those that hold in that process; None where the server is open.
        has_fronts: Whether other processes answer requests for translation: then one that comes
            here is answered, and its connection closed, so that the next one finds them.
        clock: Seconds, monotonic.
        new_request_id: Makes an id for a request that brings none.

    Raises:
        ConfigError: The environment has an impossible setting, one whose extra is missing, or a
            keys file that cannot be read or is none.
    """
    if front is None:
        front, spans = _new_front(settings or load_settings(), clock)
    settings = front.settings
    if shared is None:
        shared = _own_parts(front, clock)
    keys = _key_store(front, held_keys)
    access = Access(_access_policy(settings), shared.limiter, keys, shared.counts)
    documents = document_queue(front, access, partial(_routes_of, front.detection))
    glossaries = shared.glossaries
    app = _bare_app(_lifespan(front, shared, keys, spans, documents=documents))
    paths, endpoints = _add_routes(app, front, access, documents, glossaries)
    app.state.keys = keys  # `service.server` reloads them
    app.state.shared = shared  # and has other processes share it
    app.state.endpoints = frozenset(endpoints)
    for error_type in ANSWERED:
        app.add_exception_handler(error_type, _answer_error)
    app.add_middleware(DirectRoutes, endpoints=endpoints, on_error=_answer_error)
    if settings.cors_origins:
        app.add_middleware(Cors, reply_at=error_reply_at, origins=settings.cors_origins)
    app.add_middleware(
        Edge,
        metrics=front.metrics,
        routes=paths,
        clock=clock,
        new_request_id=new_request_id,
        is_leaving=lambda: front.arrivals.is_over,
        is_last=lambda method, path: has_fronts and (method, path) in endpoints,
        reply_at=error_reply_at,
        is_traced=is_of_deepl,
    )
    if spans is not None:
        spans.wrap(app, routes=paths)
    return app


def _own_parts(front: Front, clock: Callable[[], float]) -> Shared:
    settings = front.settings
    limiter = RateLimiter(clock, _secret(settings.redis_url))
    front.metrics.watch_redis(lambda: limiter.is_lost)
    return Shared(
        limiter=limiter,
        counts=CharacterCounts(),
        glossaries=glossaries_of(settings),
        close=limiter.close,
    )


def _new_front(settings: Settings, clock: Callable[[], float]) -> "tuple[Front, Spans | None]":
    spans = open_tracing(settings)
    front = Front(
        settings,
        Metrics(CollectorRegistry()),
        clock=clock,
        on_finished=None if spans is None else spans.segments_finished,
    )
    return front, spans


def _bare_app(lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]]) -> FastAPI:
    """An application without routes, and without what FastAPI would add of its own."""
    return _Application(
        title="Dragoman",
        description=_DESCRIPTION,
        version=distribution_version(),
        lifespan=lifespan,
        # Its pages load scripts from elsewhere; `service.api.operations.docs` has its own.
        docs_url=None,
        redoc_url=None,
        # A redirect would repeat the request's host and query string.
        redirect_slashes=False,
        # FastAPI's own spans would carry the query string, and with it texts and keys.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )


def _secret(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()


def _access_policy(settings: Settings) -> AccessPolicy:
    return AccessPolicy(
        key_required=settings.key_required,
        metrics_key_required=settings.metrics_key_required,
        requests_per_minute=settings.requests_per_minute,
        characters_per_minute=settings.characters_per_minute,
        trusted_proxies=settings.trusted_proxies,
    )


def _key_store(front: Front, held: KeyRing | None) -> KeyStore:
    settings = front.settings
    sources = KeySources(
        file=settings.api_keys_file,
        directory=settings.api_keys_dir,
        text=settings.api_keys.get_secret_value(),
    )
    store = KeyStore(sources, held=held, on_reload=partial(front.metrics.reloaded, "keys"))
    front.metrics.loaded("keys")
    return store


def _lifespan(
    front: Front,
    shared: Shared,
    keys: KeyStore,
    spans: "Spans | None",
    *,
    documents: DocumentQueue | None,
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        watch = asyncio.create_task(keys.watch(), name="keys watch")
        try:
            async with (
                shared.glossaries.running(),
                front.running(),
                documents.running() if documents else nullcontext(),
            ):
                yield
        finally:
            watch.cancel()
            await asyncio.wait([watch])
            if spans is not None:
                await spans.close()
            await shared.close()

    return lifespan


def _add_routes(
    app: FastAPI,
    front: Front,
    access: Access,
    documents: DocumentQueue | None,
    glossaries: Glossaries,
) -> tuple[list[str], dict[tuple[str, str], Endpoint]]:
    """Add every route; their paths, those of the documentation included, and direct endpoints."""
    endpoints: dict[tuple[str, str], Endpoint] = {}
    paths = [path for route in app.routes if (path := getattr(route, "path", None))]
    routes: list[Route] = []
    admission = Admission(front=front, access=access, readers=_body_readers(front))
    for router in (
        *_document_routers(admission, documents, glossaries),
        libretranslate.build_router(admission),
        v1.build_router(admission),
        *deepl.build_routers(admission, glossaries),
        health.build_router(front, access),
        admin.build_router(front, check_admin=access.check_admin),
        models.build_router(front, check_admin=access.check_admin),
        docs.build_router(app.openapi),
        web.build_router(has_page=front.settings.page),
    ):
        app.include_router(router)
        routes += [route for route in router.routes if isinstance(route, Route)]
        endpoints |= endpoints_of(router.routes)
    app.router.routes += refusals(routes)
    return [*paths, *(route.path for route in routes)], endpoints


def _document_routers(
    admission: Admission, queue: DocumentQueue | None, glossaries: Glossaries
) -> list[APIRouter]:
    """The routes of documents in every contract; none where they are off."""
    if queue is None:
        return []
    receiving = Receiving(front=admission.front, access=admission.access, queue=queue)
    return [
        v1_documents.build_documents(receiving),
        libretranslate_files.build_files(receiving),
        deepl_documents.build_documents(receiving, admission, glossaries),
    ]


def _routes_of(detection: LanguageDetection, table: RoutingTable, asked: JobOptions) -> Routes:
    """The routes of a document among what is served now.

    Raises:
        RequestError: A 400: it has none any more, or its language cannot be told any more.
    """
    chosen = choose_route(
        table, source=asked.source, target=asked.target, aliases=NO_ALIASES, model=asked.model
    )
    if chosen.by_source is None or detection.is_on:
        return chosen.route, chosen.by_source
    return chosen.by_source[undetected_source(chosen.by_source)], None


def _body_readers(front: Front) -> BodyReaders:
    settings = front.settings
    known = BodyReader(
        max_bytes=settings.max_body_bytes,
        timeout_seconds=settings.body_timeout_seconds,
        executor=front.text_thread,
        arrivals=front.arrivals,
    )
    stranger = replace(known, executor=front.strangers_thread)
    keyless = stranger
    if settings.key_required is not False:
        limit = min(settings.max_keyless_body_bytes, settings.max_body_bytes)
        keyless = replace(stranger, max_bytes=limit, too_large=key_required)
    return BodyReaders(known=known, stranger=stranger, keyless=keyless)


async def _answer_error(request: Request, error: Exception) -> Response:
    problem = note_problem(context_of(request), error)
    headers = error.headers if isinstance(error, HTTPException) else None
    return error_reply_at(request.scope["path"], problem, headers)
