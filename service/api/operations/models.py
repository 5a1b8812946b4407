"""Models: `GET /v1/models` for everybody, loading and unloading for administrators only.

Owns the routes and their replies. The check of the administrator's key is passed in; what is known
of a model is `service.models.checkpoints.catalogue`, how one is loaded
`service.models.deployments.rollout`.
"""

from collections.abc import Callable, Container, Mapping
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from model.arithmetic import ComputeReason
from service.access.access import DOCUMENTED
from service.api.operations.health import FaultReply, faults_of
from service.engine.messages import LoadedCheckpoint
from service.errors import no_such_model
from service.front import Front
from service.http.replies import JsonReply, error_responses, path_parameter
from service.models.checkpoints.catalogue import MAX_LISTED_PAIRS, ModelEntry

_NAMED = path_parameter("name", "Of a model, as `GET /v1/models` has it.")
_CHANGE_ERRORS = error_responses(401, 403, 404, 409, 503)


class PairReply(BaseModel):
    """A direction."""

    source: str
    target: str


class ModelReply(BaseModel):
    """A checkpoint: what `model` of a request may name, if it is loaded."""

    name: str
    state: Literal["loaded", "asleep", "unloaded"] = Field(
        description="What is asleep is loaded by its first request."
    )
    description: str
    licence: str
    num_weight_bytes: int = Field(description="Of the weights, as they are stored.")
    compute_type: str | None = Field(description="Its arithmetic; null unless it is loaded.")
    compute_reason: ComputeReason | None = Field(description="Why; null unless it is loaded.")
    sources: list[str] = Field(description="Languages that it translates from.")
    targets: list[str] = Field(description="Languages that it translates to.")
    num_pairs: int
    pairs: list[PairReply] | None = Field(
        description=f"Its directions; null if there are more than {MAX_LISTED_PAIRS}."
    )


class ModelsReply(BaseModel):
    """All models: those that are loaded, then the others."""

    models: list[ModelReply]
    faulty: list[FaultReply] = Field(description="What is there and cannot be loaded.")


def build_router(front: Front, *, check_admin: Callable[[Request], None]) -> APIRouter:
    """The routes.

    Args:
        front: What serves the models.
        check_admin: Raises unless the request comes from an administrator.
    """
    router = APIRouter(prefix="/v1/models", tags=["Models"])

    def contents() -> list[dict[str, object]]:
        entries, served = front.models, front.table.names
        loaded = {one.name: one for one in front.loaded}
        return [_content(entry, loaded, served) for entry in entries]

    @router.get(
        "",
        summary="Models",
        responses={
            200: {"model": ModelsReply, "description": "All there are."},
            **error_responses(503),
        },
    )
    async def models() -> JsonReply:
        return JsonReply({"models": contents(), "faulty": faults_of(front)})

    async def change(request: Request, *, is_loaded: bool) -> JsonReply:
        check_admin(request)
        name = str(request.path_params["name"])
        await front.set_loaded(name, is_loaded=is_loaded)
        content = next((one for one in contents() if one["name"] == name), None)
        if content is None:  # its directory was taken away meanwhile
            raise no_such_model(name)
        return JsonReply(content)

    @router.post(
        "/{name:path}/load",
        summary="Serve a model that is unloaded, without a pause",
        responses={
            200: {"model": ModelReply, "description": "It is served."},
            **_CHANGE_ERRORS,
        },
        openapi_extra=_NAMED,
        dependencies=[DOCUMENTED],
    )
    async def load(request: Request) -> JsonReply:
        return await change(request, is_loaded=True)

    @router.post(
        "/{name:path}/unload",
        summary="Serve a model no more and free its memory, without a pause for others",
        responses={
            200: {"model": ModelReply, "description": "It is not served any more."},
            **_CHANGE_ERRORS,
        },
        openapi_extra=_NAMED,
        dependencies=[DOCUMENTED],
    )
    async def unload(request: Request) -> JsonReply:
        return await change(request, is_loaded=False)

    return router


def _content(
    entry: ModelEntry, loaded: Mapping[str, LoadedCheckpoint], served: Container[str]
) -> dict[str, object]:
    """A `ModelReply` as plain values."""
    checkpoint = loaded.get(entry.name)
    resting = "asleep" if entry.name in served else "unloaded"
    return {
        "name": entry.name,
        "state": resting if checkpoint is None else "loaded",
        "description": entry.description,
        "licence": entry.licence,
        "num_weight_bytes": entry.num_weight_bytes,
        "compute_type": None if checkpoint is None else checkpoint.compute_type,
        "compute_reason": None if checkpoint is None else checkpoint.compute_reason,
        "sources": entry.sources,
        "targets": entry.targets,
        "num_pairs": entry.num_pairs,
        "pairs": None
        if entry.pairs is None
        else [{"source": pair.source, "target": pair.target} for pair in entry.pairs],
    }
