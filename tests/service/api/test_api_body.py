import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.types import Message

from model.translation import without_surrogates
from service.api.body import BodyReader, decode_object
from service.errors import ClientGoneError, RequestError


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(max_workers=1) as executor:
        yield executor


@pytest.fixture
def reader(executor: Executor) -> BodyReader:
    return BodyReader(max_bytes=64 * 1024, timeout_seconds=0.05, executor=executor)


def _request(*chunks: bytes, query: bytes = b"", is_whole: bool = True, **headers: str) -> Request:
    """A request whose body comes in chunks, then ends or (not whole) never does."""
    messages: list[Message] = [
        {"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks
    ]
    if is_whole:
        messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> Message:
        return messages.pop(0) if messages else await asyncio.Future()

    scope = {
        "type": "http",
        "method": "POST",
        "query_string": query,
        "headers": [
            (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
        ],
    }
    return Request(scope, receive)


def _values(reader: BodyReader, request: Request) -> dict[str, object]:
    return asyncio.run(reader.read_values(request))


def _status(reader: BodyReader, request: Request) -> int:
    with pytest.raises(RequestError) as caught:
        _values(reader, request)
    return caught.value.problem.status


JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


def test_a_json_object_is_read_in_pieces(reader: BodyReader) -> None:
    request = _request(b'{"q": ', b'"a"}', content_type="Application/JSON; charset=utf-8")
    assert _values(reader, request) == {"q": "a"}


def test_a_form_hides_the_query_string_and_the_query_string_fills_it_up(
    reader: BodyReader,
) -> None:
    request = _request(b"q=form&source=en", query=b"q=query&target=zh", content_type=FORM)
    assert _values(reader, request) == {"q": "form", "source": "en", "target": "zh"}


def test_a_query_string_without_a_body_is_enough(reader: BodyReader) -> None:
    assert _values(reader, _request(query=b"q=a+b%21&source=en")) == {"q": "a b!", "source": "en"}


def test_a_name_that_comes_twice_has_a_list(reader: BodyReader) -> None:
    assert _values(reader, _request(b"q=a&q=b", content_type=FORM)) == {"q": ["a", "b"]}


def test_a_large_form_is_decoded_like_a_small_one(reader: BodyReader) -> None:
    text = "%41" * 10_000
    request = _request(f"q={text}".encode(), content_type=FORM)
    assert _values(reader, request) == {"q": "A" * 10_000}


def test_more_bytes_than_allowed_are_refused_while_reading(reader: BodyReader) -> None:
    chunks = [b"x" * 40_000, b"x" * 40_000]
    assert _status(reader, _request(*chunks, is_whole=False, content_type=JSON)) == 413


def test_an_announced_length_over_the_limit_is_refused_before_reading(reader: BodyReader) -> None:
    request = _request(is_whole=False, content_type=JSON, content_length="65537")
    assert _status(reader, request) == 413


def test_a_query_string_over_the_limit_is_refused(reader: BodyReader) -> None:
    assert _status(reader, _request(query=b"q=" + b"x" * 65_536)) == 413


@pytest.mark.parametrize("length", ["", "-1", "abc", "9" * 50, "١٢"])
def test_a_length_that_is_no_number_is_not_believed(reader: BodyReader, length: str) -> None:
    request = _request(b"{}", content_type=JSON)
    request.scope["headers"].append((b"content-length", length.encode("utf-8")))
    assert _values(reader, request) == {}


def test_a_body_that_never_ends_is_given_up_with_408(reader: BodyReader) -> None:
    assert _status(reader, _request(b"{", is_whole=False, content_type=JSON)) == 408


def test_a_client_that_leaves_while_sending_is_no_bad_request(reader: BodyReader) -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "query_string": b"", "headers": headers}
    with pytest.raises(ClientGoneError):
        _values(reader, Request(scope, receive))


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "", "\x00", "x" * 999])
def test_a_body_of_another_type_is_refused(reader: BodyReader, content_type: str) -> None:
    request = _request(b"q=a", content_type=content_type)
    assert _status(reader, request) == 400


def test_only_json_will_do_where_json_is_asked_for(reader: BodyReader) -> None:
    with pytest.raises(RequestError, match="must be application/json"):
        asyncio.run(reader.read_json(_request(b"q=a", content_type=FORM)))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b'{"q": "a"} trailing', "not valid JSON"),
        (b"\xef\xbb\xbf{}", "not valid JSON"),
        (b'{"q": "\xff"}', "not valid UTF-8 at byte 7"),
        (b'{"q": "\xed\xa0\x80"}', "not valid UTF-8"),
        (b'{"q": NaN}', "NaN"),
        (b'{"q": -Infinity}', "-Infinity"),
        (b'{"q": 1, "q": 2}', "a name twice"),
        (b'{"q": ' + b"9" * 5000 + b"}", "5000 digits"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"[]", "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'"q"', "must be a JSON object"),
    ],
)
def test_what_is_no_json_object_is_a_400_that_says_why(body: bytes, message: str) -> None:
    with pytest.raises(RequestError, match=message) as caught:
        decode_object(body)
    assert caught.value.problem.status == 400


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_a_400(body: bytes) -> None:
    assert _status_of(body) in (None, 400)


def _status_of(body: bytes) -> int | None:
    try:
        decode_object(body)
    except RequestError as error:
        return error.problem.status
    return None


@given(st.dictionaries(st.text(), st.text()))
def test_any_object_of_texts_comes_through_unchanged(values: dict[str, str]) -> None:
    assert decode_object(json.dumps(values).encode()) == values


def test_an_unpaired_surrogate_becomes_the_replacement_character() -> None:
    value = decode_object(rb'{"q": "a\ud800b\udc00\ud83d\ude00"}')["q"]
    assert isinstance(value, str)
    assert without_surrogates(value) == "a\ufffdb\ufffd😀"
