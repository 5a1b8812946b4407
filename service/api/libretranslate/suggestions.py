"""Suggestions of LibreTranslate's contract: other translations that people propose.

Owns their fields, and the file that they are appended to where the operator names one: one JSON
object a line. Nothing here reads it.
"""

import asyncio
import errno
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import BaseModel

from model.text.languages.tags import lenient_tag
from model.text.pipeline import without_surrogates
from service.api.checks import check_texts
from service.api.languages import LIBRETRANSLATE_ALIASES
from service.api.libretranslate.request import required_string
from service.errors import Problem, RequestError, unavailable
from service.http.replies import error_responses
from service.settings import Settings

_LOGGER = logging.getLogger("dragoman.suggestions")

MAX_BYTES = 64 * 1024 * 1024
"""Of the file; a fuller one takes no more."""

_FIELDS = ("q", "s", "source", "target")


class SuggestReply(BaseModel):
    """It was written down."""

    success: bool


SUGGEST_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": SuggestReply, "description": "It was written down."},
    **error_responses(400, 401, 403, 408, 413, 415, 429, 431, 503),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Another translation of a text.

    Attributes:
        q: The text.
        s: What it should be.
        source: Language of the text, a BCP-47 tag.
        target: Language of the translation.
    """

    q: str
    s: str
    source: str
    target: str


def suggestion(values: Mapping[str, object], settings: Settings) -> Suggestion:
    """A request's values, checked; that the languages are loaded is not needed.

    Raises:
        RequestError: A 400 or 413.
        InputError: A language is no code.
    """
    q, s, source, target = (required_string(values, name) for name in _FIELDS)
    for text in (q, s):
        check_texts((text,), settings)
    return Suggestion(
        q=without_surrogates(q), s=without_surrogates(s), source=_tag(source), target=_tag(target)
    )


def _tag(code: str) -> str:
    return lenient_tag(LIBRETRANSLATE_ALIASES.get(code.lower(), code))


class SuggestionFile:
    """File that suggestions are appended to.

    Args:
        path: Made by the first one, readable by its owner alone; None refuses all.
        max_bytes: Size from which it takes no more.
    """

    def __init__(self, path: Path | None, *, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._lock = Lock()

    def check_open(self) -> None:
        """Return if suggestions are taken.

        Raises:
            RequestError: A 403.
        """
        if self._path is None:
            message = "Suggestions are disabled on this server."
            raise RequestError(Problem(status=403, code="suggestions_off", message=message))

    async def add(self, one: Suggestion) -> None:
        """Append a suggestion.

        Raises:
            RequestError: A 403 where none are taken; a 503: the file is full or cannot be written.
        """
        self.check_open()
        try:
            await asyncio.to_thread(self._append, one)
        except OSError as error:
            fields = {"reason": error.strerror or type(error).__name__}
            _LOGGER.error("suggestion_not_written", extra={"fields": fields})  # noqa: TRY400  # it is foreseen
            raise unavailable("the suggestion cannot be written", code="not_written") from error

    def _append(self, one: Suggestion) -> None:
        assert self._path is not None
        line = json.dumps(asdict(one), ensure_ascii=False).encode() + b"\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        with self._lock, os.fdopen(os.open(self._path, flags, 0o600), "wb", buffering=0) as file:
            num_bytes = file.seek(0, os.SEEK_END)
            if num_bytes + len(line) > self._max_bytes:
                raise unavailable(
                    f"the file of suggestions has {num_bytes} bytes; the limit is"
                    f" {self._max_bytes}",
                    code="suggestions_full",
                )
            if file.write(line) < len(line):
                file.truncate(num_bytes)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def suggest_operation(*, is_open: bool) -> dict[str, Any]:
    """Bodies of `POST /suggest`.

    Args:
        is_open: Suggestions are taken, so that there is an example to try.
    """
    words = {
        "q": "Text.",
        "s": "What its translation should be.",
        "source": "Language of the text.",
        "target": "Language of the translation.",
        "api_key": "A key, where the server has any.",
    }
    schema = {
        "type": "object",
        "required": list(_FIELDS),
        "properties": {
            name: {"type": "string", "description": text} for name, text in words.items()
        },
    }
    kinds = ("application/json", "application/x-www-form-urlencoded")
    body: dict[str, Any] = {"schema": schema}
    if is_open:
        body["example"] = {"q": "Thank you.", "s": "谢谢！", "source": "en", "target": "zh"}
    return {"requestBody": {"required": True, "content": dict.fromkeys(kinds, body)}}
