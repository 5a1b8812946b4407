"""Events of `POST /v1/translate/stream`: their shapes, and how sentences are put into them.

Owns both, and the one field that a stream takes beside those of `POST /v1/translate`
(`service.api.v1.request`). The last event is the reply of that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs
from pydantic import Field

from model.text.drafts.checks import Quality
from service.api.v1.reply import quality_content, reply_content
from service.api.v1.request import (
    DragomanWire,
    ReplyOptions,
    TranslateRequest,
    job_of,
    request_body,
    validated,
)
from service.errors import invalid
from service.http.events import Event
from service.http.replies import error_responses
from service.models.requests.translation import (
    AddedText,
    DoneSegment,
    TranslatedText,
    TranslationRequest,
)
from service.settings import Settings

_EXAMPLE = {
    "texts": "Two dogs are running on the grass. Thank you.",
    "source": "en",
    "target": "zh-Hans",
    "beam_size": 1,
    "tokens": True,
}

_DESCRIPTION = (
    "Events. `segment`: a sentence as soon as it is done, in any order: `text_index` and `index`"
    " (which text, which sentence of it), `start` (characters of the text before it), `separator`"
    " (what stands before it in the translation), `source`, `text`, `is_verbatim`, `is_cut`,"
    " `is_truncated`, `quality`. `token`, with `tokens`: what the"
    " model has added to a sentence: `text_index`, `index`, `text`, and `restart`, if what came of"
    " the sentence before does not count any more. `result`, the last one: what"
    " `POST /v1/translate` answers. `error`, instead of it: `status`, and the fields of any error."
)

_EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"type": "string", "enum": ["token", "segment", "result", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}

STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/event-stream": {"schema": _EVENT}},
        "description": _DESCRIPTION,
    },
    **error_responses(400, 401, 403, 408, 413, 415, 429, 431, 503, 504),
}


class StreamRequest(TranslateRequest):
    """What `POST /v1/translate/stream` takes."""

    tokens: bool = Field(
        default=False,
        description="Send what the model writes of each sentence while it does: `token` events,"
        " which its `segment` event supersedes. For plain text and a greedy search: `beam_size` 1.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DragomanStream(DragomanWire):
    """Wire of `POST /v1/translate/stream`; see `service.api.admission.StreamContract`."""

    def parse(self, values: Mapping[str, object]) -> tuple[TranslationRequest, ReplyOptions]:
        """The request's values, checked.

        Raises:
            RequestError: As of `DragomanWire.parse`; a 400 for tokens that are not to be had.
        """
        fields = validated(values, self.front.settings, StreamRequest)
        job, options = job_of(fields, self.front)
        if not fields.tokens:
            return job, options
        if fields.format != "text":
            raise invalid(f"tokens are of plain text; format is {fields.format}", limit="text")
        if job.beam_size != 1 and fields.alternatives:  # they widen the beam, whatever it is
            raise invalid(
                "tokens are of a greedy search, which finds one translation;"
                f" alternatives is {fields.alternatives}, and must be 0",
                value=fields.alternatives,
                limit=0,
            )
        if job.beam_size != 1:
            raise invalid(
                f"tokens are of a greedy search; beam_size is {job.beam_size}, and must be 1",
                value=job.beam_size,
                limit=1,
            )
        return structs.replace(job, is_watched=True), options

    def segment(self, done: DoneSegment) -> Event:
        """A sentence that is done."""
        return Event(name="segment", data=segment_content(done))

    def added(self, text: AddedText) -> Event:
        """What was added to a sentence."""
        data = {
            "text_index": text.text_index,
            "index": text.index,
            "text": text.text,
            "restart": text.is_restart,
        }
        return Event(name="token", data=data)

    def result(self, results: Sequence[TranslatedText], options: ReplyOptions) -> Event:
        """A `TranslateReply`."""
        return Event(name="result", data=reply_content(results, options))


def stream_body(settings: Settings) -> dict[str, Any]:
    """The schema of the request, with this server's own limits in it."""
    return request_body(settings, StreamRequest, example=_EXAMPLE)


def segment_content(done: DoneSegment) -> dict[str, object]:
    """A sentence as plain values; what holds of one of its pieces holds of it."""
    segments = done.segments
    return {
        "text_index": done.text_index,
        "index": done.index,
        "start": done.start,
        "separator": done.separator,
        "source": done.source,
        "text": done.text,
        "is_verbatim": all(segment.is_verbatim for segment in segments),
        "is_cut": any(segment.is_cut for segment in segments),
        "is_truncated": any(segment.is_truncated for segment in segments),
        "quality": quality_content(Quality().combined(segment.quality for segment in segments)),
    }
