"""Generated requests: whatever the document allows or forbids, the answers keep to it.

A few hundred in the suite; `make fuzz` sends ten thousand.
"""

import httpx
import pytest
from schemathesis import GenerationMode

from support.fuzzing import MODES, OTHER_ROUTES, TEXT_ROUTES, Fuzzer
from support.running_server import RunningServer


@pytest.fixture(scope="module")
def fuzzer(server: RunningServer) -> Fuzzer:
    return Fuzzer(server.url)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: str(mode.value))
@pytest.mark.parametrize("path", TEXT_ROUTES)
def test_requests_that_the_document_allows_or_forbids_are_answered_as_documented(
    fuzzer: Fuzzer, path: str, mode: GenerationMode
) -> None:
    fuzzer.send_documented(path, "POST", mode, 40)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: str(mode.value))
def test_detection_answers_as_documented(fuzzer: Fuzzer, mode: GenerationMode) -> None:
    fuzzer.send_documented("/detect", "POST", mode, 10)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: str(mode.value))
def test_deepls_contract_answers_as_documented(fuzzer: Fuzzer, mode: GenerationMode) -> None:
    fuzzer.send_documented("/v2/translate", "POST", mode, 10)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: str(mode.value))
def test_a_stream_is_begun_or_refused_as_documented(fuzzer: Fuzzer, mode: GenerationMode) -> None:
    fuzzer.send_documented("/v1/translate/stream", "POST", mode, 10)


@pytest.mark.parametrize("path", OTHER_ROUTES)
def test_the_other_routes_answer_as_documented(fuzzer: Fuzzer, path: str) -> None:
    fuzzer.send_documented(path, "GET", GenerationMode.POSITIVE, 2)


@pytest.mark.parametrize("path", TEXT_ROUTES)
def test_any_text_is_translated_or_too_long(fuzzer: Fuzzer, path: str) -> None:
    fuzzer.send_texts(path, 40)


def test_the_document_describes_every_error_in_its_one_shape(fuzzer: Fuzzer) -> None:
    for path in TEXT_ROUTES:
        responses = fuzzer.schema.raw_schema["paths"][path]["post"]["responses"]
        errors = {"400", "401", "403", "408", "413", "415", "429", "431", "503", "504"}
        assert set(responses) == errors | {"200"}
        for status, response in responses.items():
            if status != "200":
                reference = response["content"]["application/json"]["schema"]["$ref"]
                assert reference == "#/components/schemas/ErrorReply"


def test_the_document_says_this_servers_limits(server: RunningServer) -> None:
    document = httpx.get(f"{server.url}/openapi.json", trust_env=False).json()
    body = document["paths"]["/v1/translate"]["post"]["requestBody"]
    properties = body["content"]["application/json"]["schema"]["properties"]
    assert properties["texts"]["anyOf"][1]["maxItems"] == 128
    assert properties["timeout_seconds"]["anyOf"][0]["maximum"] == 300.0


def test_the_document_names_the_priorities(server: RunningServer) -> None:
    document = httpx.get(f"{server.url}/openapi.json", trust_env=False).json()
    body = document["paths"]["/v1/translate"]["post"]["requestBody"]
    priority = body["content"]["application/json"]["schema"]["properties"]["priority"]
    assert priority["anyOf"][0]["enum"] == ["interactive", "bulk"]
    assert "more than a page" in priority["description"]
