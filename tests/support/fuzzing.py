"""Generated requests and what every answer to them must keep to."""

import json
from collections import Counter
from typing import Any

import requests
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.openapi import from_url
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from support.texts import SPECIAL_TEXTS, awkward_texts

HANG_SECONDS = 120
MAX_TEXT_CHARACTERS = 20_000
TEXT_ROUTES = ("/translate", "/v1/translate")
OTHER_ROUTES = (
    "/languages",
    "/frontend/settings",
    "/v1/models",
    "/v1/health",
    "/health",
    "/livez",
    "/readyz",
    "/metrics",
)
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]


class Fuzzer:
    """Sends generated requests to one server and counts the answers by status.

    Args:
        url: A ready server with default limits and one pair, en → zh-Hans.
    """

    def __init__(self, url: str) -> None:
        self.statuses: Counter[int] = Counter()
        self.schema: BaseSchema = from_url(f"{url}/openapi.json")
        self._url = url
        self._session = requests.Session()
        self._session.trust_env = False

    def send_documented(
        self, path: str, method: str, mode: GenerationMode, num_requests: int
    ) -> None:
        """Requests that the document allows (positive) or forbids (negative)."""
        strategy = self.schema[path][method].as_strategy(generation_mode=mode)

        @_examples(num_requests)
        @given(case=strategy, is_aimed=st.booleans())
        def send(case: Case[Any], is_aimed: bool) -> None:
            if is_aimed:
                _aim(case)
            reply = case.call(session=self._session, timeout=HANG_SECONDS)
            self.statuses[reply.status_code] += 1
            has_deadline = isinstance(case.body, dict) and "timeout_seconds" in case.body
            # A ready and unloaded server fails only by a deadline that it was given.
            assert reply.status_code < 500 or (reply.status_code == 504 and has_deadline)
            case.validate_response(reply, checks=CHECKS)

        send()

    def send_texts(self, path: str, num_requests: int) -> None:
        """Valid requests for awkward texts."""

        @_examples(num_requests)
        @given(text=awkward_texts)
        def send(text: str) -> None:
            self._send_text(path, text)

        for text in SPECIAL_TEXTS:
            self._send_text(path, text)
        send()

    def _send_text(self, path: str, text: str) -> None:
        name = "q" if path == "/translate" else "texts"
        # json.dumps writes a lone surrogate as an escape, as a careless client would.
        reply = self._session.post(
            f"{self._url}{path}",
            data=json.dumps({name: text, "source": "en", "target": "zh-Hans"}),
            headers={"content-type": "application/json"},
            timeout=HANG_SECONDS,
        )
        self.statuses[reply.status_code] += 1
        seen = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        content = reply.json()
        if len(seen) > MAX_TEXT_CHARACTERS:
            assert (reply.status_code, content["value"]) == (413, len(seen))
            return
        assert reply.status_code == 200
        translated = (
            content["translatedText"] if name == "q" else content["translations"][0]["text"]
        )
        assert translated.count("\n") == seen.count("\n")
        if not any(map(str.isalpha, seen)):
            assert translated == seen


def _examples(number: int) -> settings:
    return settings(
        max_examples=max(2, number),
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def _aim(case: Case[Any]) -> None:
    """Name languages that are loaded, so that the request gets past their check."""
    for values in (case.body, case.query):
        if isinstance(values, dict) and values:
            values |= {"source": "en", "target": "zh-Hans"}
