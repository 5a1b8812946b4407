import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.types import Message

from model.text.pipeline import without_surrogates
from service.errors import ClientGoneError, RequestError
from service.http.arrivals import Arrivals, note_arrived
from service.http.body import BodyReader, decode_object
from support.wire import until


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


def test_json_hides_the_query_string_and_the_query_string_fills_it_up(reader: BodyReader) -> None:
    request = _request(b'{"q": "json", "n": 1}', query=b"q=query&target=zh", content_type=JSON)
    assert _values(reader, request) == {"q": "json", "n": 1, "target": "zh"}


def test_an_empty_body_is_none_whatever_it_is_said_to_be(reader: BodyReader) -> None:
    for content_type in (JSON, FORM, "multipart/form-data", "text/plain", ""):
        request = _request(query=b"type=target", content_type=content_type)
        assert _values(reader, request) == {"type": "target"}


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


@pytest.mark.parametrize("length", ["9" * 20, "18446744073709551615", "000" + "1" * 17, "9" * 5000])
def test_a_length_of_many_digits_is_a_length(reader: BodyReader, length: str) -> None:
    request = _request(is_whole=False, content_type=JSON, content_length=length)
    assert _status(reader, request) == 413


LIMIT = 64 * 1024


def _json_of(num_bytes: int) -> bytes:
    return b'{"q": "' + b"x" * (num_bytes - len(b'{"q": ""}')) + b'"}'


@pytest.mark.parametrize("is_announced", [False, True])
@pytest.mark.parametrize("first", [LIMIT + 1, LIMIT, LIMIT - 1, 1, 0])
def test_a_body_may_have_just_as_many_bytes_as_the_limit_however_it_comes(
    reader: BodyReader, first: int, is_announced: bool
) -> None:
    headers = {"content_type": JSON}
    if is_announced:
        headers["content_length"] = str(LIMIT)
    body = _json_of(LIMIT)
    values = _values(reader, _request(body[:first], body[first:], **headers))
    assert values == {"q": "x" * (LIMIT - 9)}


@pytest.mark.parametrize("first", [LIMIT + 1, LIMIT, LIMIT - 1, 1, 0])
def test_a_body_of_one_byte_more_is_refused_with_its_size_and_the_limit(
    reader: BodyReader, first: int
) -> None:
    body = _json_of(LIMIT + 1)
    for is_announced in (False, True):
        headers = {"content_length": str(LIMIT + 1)} if is_announced else {}
        with pytest.raises(RequestError) as caught:
            _values(reader, _request(body[:first], body[first:], content_type=JSON, **headers))
        problem = caught.value.problem
        assert (problem.status, problem.value, problem.limit) == (413, LIMIT + 1, LIMIT)


def test_what_was_announced_as_small_is_counted_all_the_same(reader: BodyReader) -> None:
    request = _request(_json_of(LIMIT + 1), content_type=JSON, content_length="2")
    assert _status(reader, request) == 413


def test_a_query_string_may_have_just_as_many_bytes_as_a_body(reader: BodyReader) -> None:
    assert _values(reader, _request(query=b"q=" + b"x" * (LIMIT - 2))) == {"q": "x" * (LIMIT - 2)}
    assert _status(reader, _request(query=b"q=" + b"x" * (LIMIT - 1))) == 413


def test_a_body_and_a_query_string_may_be_empty(reader: BodyReader) -> None:
    assert _values(reader, _request()) == {}
    assert _values(reader, _request(content_length="0")) == {}
    assert _values(reader, _request(b"", query=b"q=", content_type=FORM)) == {"q": ""}


@pytest.mark.parametrize("length", ["", "-1", "abc", "١٢", "0" * 50])
def test_a_length_that_is_no_number_is_not_believed(reader: BodyReader, length: str) -> None:
    request = _request(b"{}", content_type=JSON)
    request.scope["headers"].append((b"content-length", length.encode("utf-8")))
    assert _values(reader, request) == {}


@pytest.mark.parametrize("given", ["gzip", "br", "identity, gzip", "x" * 99])
@pytest.mark.parametrize("content_type", [JSON, FORM])
def test_a_body_that_is_compressed_is_refused_unread(
    reader: BodyReader, given: str, content_type: str
) -> None:
    headers = {"content_encoding": given, "content_type": content_type, "content_length": "9"}
    with pytest.raises(RequestError) as caught:
        _values(reader, _request(is_whole=False, **headers))
    problem = caught.value.problem
    assert (problem.status, problem.code, problem.limit) == (
        415,
        "unsupported_encoding",
        "identity",
    )
    assert problem.value == (given if len(given) < 40 else len(given))


def test_what_is_as_it_is_may_say_so_and_where_there_is_no_body_nothing_counts(
    reader: BodyReader,
) -> None:
    for name in ("identity", "Identity", ""):
        request = _request(b"q=a", content_encoding=name, content_type=FORM, content_length="3")
        assert _values(reader, request) == {"q": "a"}
    assert _values(reader, _request(query=b"q=a", content_encoding="gzip")) == {"q": "a"}


def test_a_body_that_never_ends_is_given_up_with_408(reader: BodyReader) -> None:
    assert _status(reader, _request(b"{", is_whole=False, content_type=JSON)) == 408


def test_a_body_that_still_arrives_is_refused_when_the_server_leaves(executor: Executor) -> None:
    async def scenario() -> list[tuple[int, str]]:
        arrivals = Arrivals()
        reader = BodyReader(
            max_bytes=1024, timeout_seconds=3600.0, executor=executor, arrivals=arrivals
        )

        async def read() -> tuple[int, str]:
            request = _request(b"{", is_whole=False, content_type=JSON)
            with pytest.raises(RequestError) as caught:
                await reader.read_values(request)
            return caught.value.problem.status, caught.value.problem.code

        reading = asyncio.create_task(read())
        await until(lambda: repr(arrivals) == "Arrivals(1)")
        arrivals.end()
        late = await read()
        return [await reading, late]

    assert asyncio.run(scenario()) == [(503, "draining")] * 2


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


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/merge-patch+json", "application/x+JSON;a=b"]
)
def test_every_type_of_json_is_json(reader: BodyReader, content_type: str) -> None:
    request = _request(b'{"q": "a"}', query=b"q=b", content_type=content_type)
    assert asyncio.run(reader.read_json(request)) == {"q": "a"}


class Counting(ThreadPoolExecutor):
    """Counts what it is given."""

    num_tasks = 0

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        self.num_tasks += 1
        return super().submit(*args, **kwargs)


def test_what_is_large_is_decoded_beside_the_event_loop() -> None:
    with Counting(max_workers=1) as executor:
        reader = BodyReader(max_bytes=LIMIT, timeout_seconds=5.0, executor=executor)
        for request in (
            _request(_json_of(LIMIT), content_type=JSON),
            _request(b"q=" + b"x" * (LIMIT - 2), content_type=FORM),
            _request(query=b"q=" + b"x" * (LIMIT - 2)),
        ):
            before = executor.num_tasks
            assert _values(reader, request)
            assert executor.num_tasks == before + 1


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


def test_an_integer_may_have_eighteen_digits_and_no_more() -> None:
    assert decode_object(b'{"n": ' + b"9" * 18 + b"}") == {"n": 10**18 - 1}
    with pytest.raises(RequestError, match="a number in the body has 19 digits; the limit is 18"):
        decode_object(b'{"n": ' + b"9" * 19 + b"}")


def test_a_name_may_come_twice_in_different_objects() -> None:
    assert decode_object(b'{"a": {"q": 1}, "b": {"q": 2}}') == {"a": {"q": 1}, "b": {"q": 2}}
    with pytest.raises(RequestError, match="a name twice"):
        decode_object(b'{"a": {"q": 1, "q": 2}}')


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


def test_a_body_that_is_there_is_read_without_a_time_and_refused_when_the_server_leaves(
    executor: Executor,
) -> None:
    async def scenario() -> tuple[dict[str, object], int]:
        arrivals = Arrivals()
        reader = BodyReader(
            max_bytes=1024, timeout_seconds=0.0, executor=executor, arrivals=arrivals
        )

        def request() -> Request:
            asked = _request(b'{"q": ', b'"a"}', content_type=JSON)
            note_arrived(asked.scope)
            return asked

        values = await reader.read_values(request())
        arrivals.end()
        with pytest.raises(RequestError) as caught:
            await reader.read_values(request())
        return values, caught.value.problem.status

    assert asyncio.run(scenario()) == ({"q": "a"}, 503)
