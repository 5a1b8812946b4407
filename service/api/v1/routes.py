"""Contract of Dragoman: `POST /v1/translate` and its stream, typed and strict.

Owns their paths. Fields are `service.api.v1.request`, answers `service.api.v1.reply` and
`service.api.v1.stream`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from service.access.access import DOCUMENTED
from service.api.admission import Admission
from service.api.v1.reply import TRANSLATE_RESPONSES, reply_content
from service.api.v1.request import DragomanWire, ReplyOptions, request_body
from service.api.v1.stream import STREAM_RESPONSES, DragomanStream, stream_body
from service.http.direct import DirectRoute
from service.http.events import EventStream
from service.http.replies import JsonReply
from service.models.requests.translation import TranslatedText


@dataclass(frozen=True, slots=True, kw_only=True)
class DragomanV1(DragomanWire):
    """Wire of `POST /v1/translate`; see `service.api.admission.Contract`."""

    def reply(self, results: Sequence[TranslatedText], options: ReplyOptions) -> Response:
        """A `TranslateReply`."""
        return JsonReply(reply_content(results, options))


def build_router(admission: Admission) -> APIRouter:
    """The routes of this contract."""
    router = APIRouter(prefix="/v1", tags=["Dragoman"], route_class=DirectRoute)
    contract = DragomanV1(front=admission.front)
    stream_contract = DragomanStream(front=admission.front)

    @router.post(
        "/translate",
        summary="Translate texts, with every option",
        responses=TRANSLATE_RESPONSES,
        openapi_extra={"requestBody": request_body(admission.front.settings)},
        dependencies=[DOCUMENTED],
    )
    async def translate(request: Request) -> Response:
        return await admission.answer(request, contract)

    @router.post(
        "/translate/stream",
        summary="Translate texts, each sentence as it is done",
        response_class=Response,
        responses=STREAM_RESPONSES,
        openapi_extra={"requestBody": stream_body(admission.front.settings)},
        dependencies=[DOCUMENTED],
    )
    async def stream(request: Request) -> Response:
        return EventStream(await admission.events(request, stream_contract))

    return router
