"""Probes and metrics: is it alive, is it ready, what does it measure.

Owns `/health` (LibreTranslate's spelling of ready), `/livez`, `/readyz` and `/metrics`. Alive
means that a restart would not help; ready means that a translation would be accepted now.
"""

from typing import Literal

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from starlette.responses import Response

from service.api.access import DOCUMENTED, Access
from service.api.replies import JsonReply, error_responses
from service.front import Front


class HealthReply(BaseModel):
    """All is well."""

    status: Literal["ok"]


def build_router(front: Front, access: Access) -> APIRouter:
    """The routes that need no text."""
    router = APIRouter(tags=["Health"])
    responses = {200: {"model": HealthReply, "description": "Yes."}, **error_responses(503)}

    @router.get("/health", summary="Ready?", responses=responses)
    @router.get("/readyz", summary="Ready?", responses=responses)
    async def ready() -> JsonReply:
        front.check_ready()
        return JsonReply({"status": "ok"})

    @router.get("/livez", summary="Alive?", responses=responses)
    async def live() -> JsonReply:
        front.check_live()
        return JsonReply({"status": "ok"})

    @router.get(
        "/metrics",
        summary="Metrics for Prometheus",
        response_class=Response,
        responses={
            200: {"content": {CONTENT_TYPE_LATEST: {}}, "description": "Metrics."},
            **error_responses(401, 403),
        },
        dependencies=[DOCUMENTED],
    )
    async def metrics(request: Request) -> Response:
        access.check_metrics(request)
        return Response(front.metrics.render(), media_type=CONTENT_TYPE_LATEST)

    return router
