"""Administration: `POST /admin/reload`, for administrators only.

Owns the route and its reply. The check of the administrator's key is passed in; how
checkpoints are replaced is `service.front`.
"""

from collections.abc import Callable

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from service.access.access import DOCUMENTED
from service.api.operations.health import FaultReply, faults_of
from service.front import Front
from service.http.replies import JsonReply, error_responses


class ReloadReply(BaseModel):
    """What is served now."""

    checkpoints: list[str] = Field(description="Names of the checkpoints, as they are loaded.")
    faulty: list[FaultReply] = Field(description="Checkpoints that could not be loaded.")


def build_router(front: Front, *, check_admin: Callable[[Request], None]) -> APIRouter:
    """The routes.

    Args:
        front: What is administered.
        check_admin: Raises unless the request comes from an administrator.
    """
    router = APIRouter(prefix="/admin", tags=["Administration"])

    @router.post(
        "/reload",
        summary="Load the checkpoints anew, without a pause",
        responses={
            200: {"model": ReloadReply, "description": "The new ones are served."},
            **error_responses(401, 403, 404, 409, 503),
        },
        dependencies=[DOCUMENTED],
    )
    async def reload(request: Request) -> JsonReply:
        check_admin(request)
        await front.reload()
        names = [checkpoint.name for checkpoint in front.loaded]
        return JsonReply({"checkpoints": names, "faulty": faults_of(front)})

    return router
