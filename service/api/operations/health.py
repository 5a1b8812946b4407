"""Probes and metrics: liveness, readiness, health and the page for Prometheus.

Owns `/health` (LibreTranslate's spelling of ready), `/v1/health` (ready, and what is served),
`/livez`, `/readyz` and `/metrics`. Alive means that a restart would not help; ready means that a
translation would be accepted now.
"""

import asyncio
from dataclasses import asdict
from typing import Literal

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field
from starlette.responses import Response

from model.arithmetic import ComputeReason
from service.access.access import DOCUMENTED, Access
from service.front import Front
from service.http.replies import JsonReply, error_response, error_responses


class ProbeReply(BaseModel):
    """All is well."""

    status: Literal["ok"]


class CheckpointReply(BaseModel):
    """A checkpoint that is served."""

    name: str
    compute_type: str = Field(description="Its arithmetic.")
    compute_reason: ComputeReason = Field(
        description="Why: none is faster here, it was asked for, or what stands in the way of int8."
    )
    compute_problem: str = Field(description="What stands in the way, in words, or nothing.")


class FaultReply(BaseModel):
    """A checkpoint that could not be loaded as it is on the disk."""

    directory: str = Field(description="Name of its directory.")
    reason: str = Field(description="What is wrong with it.")
    is_served: bool = Field(description="An earlier version of it still is served.")


class ReplicasReply(BaseModel):
    """The engines of the checkpoints that are loaded at the start."""

    ready: int = Field(description="Those that translate now, at least one.")
    of: int = Field(description="Those that there are to be.")


class HealthReply(ProbeReply):
    """A translation would be accepted now: of what, and in which arithmetic."""

    checkpoints: list[CheckpointReply]
    faulty: list[FaultReply]
    replicas: ReplicasReply


_NOT_ALIVE = error_response("Only a restart helps: it could not start, or its engine is gone.")


def faults_of(front: Front) -> list[dict[str, object]]:
    """The checkpoints that could not be loaded, each as a `FaultReply`."""
    return [asdict(fault) for fault in front.faults]


def build_router(front: Front, access: Access) -> APIRouter:
    """The routes that need no text."""
    router = APIRouter(tags=["Health"])
    errors = error_responses(503)
    responses = {200: {"model": ProbeReply, "description": "Yes."}, **errors}
    health_responses = {
        200: {"model": HealthReply, "description": "Yes, and what is served."},
        **errors,
    }
    live_responses = {**responses, 503: _NOT_ALIVE}

    @router.get("/v1/health", summary="Ready, and with what?", responses=health_responses)
    async def health() -> JsonReply:
        front.check_ready()
        checkpoints = [
            {name: getattr(one, name) for name in CheckpointReply.model_fields}
            for one in front.loaded
        ]
        num_ready, number = front.replicas
        return JsonReply(
            {
                "status": "ok",
                "checkpoints": checkpoints,
                "faulty": faults_of(front),
                "replicas": {"ready": num_ready, "of": number},
            }
        )

    @router.get("/health", summary="Ready? As LibreTranslate says it", responses=responses)
    @router.get("/readyz", summary="Ready?", responses=responses)
    async def ready() -> JsonReply:
        front.check_ready()
        return JsonReply({"status": "ok"})

    @router.get("/livez", summary="Alive?", responses=live_responses)
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
        await front.metrics.refresh()
        parts = []
        for part in front.metrics.render_parts():
            parts.append(part)
            await asyncio.sleep(0)  # others have their turn
        return Response(b"".join(parts), media_type=CONTENT_TYPE_LATEST)

    return router
