"""Events of `POST /v1/translate/stream`: their shapes, and how sentences are put into them.

Owns both. Requests are those of `POST /v1/translate`, and the last event is its reply.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from model.text.drafts.checks import Quality
from service.api.v1.reply import quality_content, reply_content
from service.api.v1.request import DragomanWire, ReplyOptions
from service.http.events import Event
from service.http.replies import error_responses
from service.models.requests.translation import DoneSegment, TranslatedText

_DESCRIPTION = (
    "Events. `segment`: a sentence as soon as it is done, in any order: `text_index` and `index`"
    " (which text, which sentence of it), `start` (characters of the text before it), `source`,"
    " `text`, `is_verbatim`, `is_cut`, `is_truncated`, `quality`. `result`, the last one: what"
    " `POST /v1/translate` answers. `error`, instead of it: `status`, and the fields of any error."
)

_EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"type": "string", "enum": ["segment", "result", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}

STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/event-stream": {"schema": _EVENT}},
        "description": _DESCRIPTION,
    },
    **error_responses(400, 401, 403, 408, 413, 429, 431, 503, 504),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DragomanStream(DragomanWire):
    """Wire of `POST /v1/translate/stream`; see `service.api.admission.StreamContract`."""

    def segment(self, done: DoneSegment) -> Event:
        """A sentence that is done."""
        return Event(name="segment", data=segment_content(done))

    def result(self, results: Sequence[TranslatedText], options: ReplyOptions) -> Event:
        """A `TranslateReply`."""
        return Event(name="result", data=reply_content(results, options))


def segment_content(done: DoneSegment) -> dict[str, object]:
    """A sentence as plain values; what holds of one of its pieces holds of it."""
    segments = done.segments
    return {
        "text_index": done.text_index,
        "index": done.index,
        "start": done.start,
        "source": done.source,
        "text": done.text,
        "is_verbatim": all(segment.is_verbatim for segment in segments),
        "is_cut": any(segment.is_cut for segment in segments),
        "is_truncated": any(segment.is_truncated for segment in segments),
        "quality": quality_content(Quality().combined(segment.quality for segment in segments)),
    }
