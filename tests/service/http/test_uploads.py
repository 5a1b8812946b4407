import io
from collections.abc import Sequence

import pytest
from starlette.requests import Request

from service.errors import RequestError
from service.http.uploads import (
    MAX_FIELD_BYTES,
    MAX_FRAME_BYTES,
    FormBody,
    PlainBody,
    check_announced,
)

TYPE = "multipart/form-data; boundary=xyz"


def form(*parts: tuple[str, bytes], end: bytes = b"--xyz--\r\n") -> bytes:
    """Parts of a form by what their dispositions say."""
    return (
        b"".join(
            f"--xyz\r\nContent-Disposition: form-data; {words}\r\n\r\n".encode() + data + b"\r\n"
            for words, data in parts
        )
        + end
    )


def read(data: bytes, sizes: Sequence[int] = (10**9,)) -> tuple[FormBody, bytes]:
    """A form that arrives in pieces of these sizes, again and again."""
    output = io.BytesIO()
    body = FormBody(output, TYPE)
    while data:
        for size in sizes:
            if data[:size]:
                body.feed(data[:size])
            data = data[size:]
    body.finish()
    return body, output.getvalue()


FILE = b"PK\x03\x04\r\n--xy\r\n\0 rest"
WHOLE = form(
    ('name="source"', b"en"),
    ('name="file"; filename="d:\\\\r\xc3\xa9port.docx"'.encode("latin-1").decode(), FILE),
    ('name="api_key"', b"geheim"),
)


@pytest.mark.parametrize("sizes", [(10**9,), (1,), (7, 3), (64,)])
def test_a_form_is_the_same_however_it_arrives(sizes: Sequence[int]) -> None:
    body, file = read(WHOLE, sizes)
    assert file == FILE
    assert body.num_bytes == len(FILE)
    assert body.fields == {"source": "en", "api_key": "geheim"}
    assert body.file_name is not None
    assert body.file_name.endswith("port.docx")


def test_fields_before_the_file_are_known_while_it_arrives() -> None:
    output = io.BytesIO()
    body = FormBody(output, TYPE)
    head = form(('name="api_key"', b"geheim"), ('name="file"; filename="a.txt"', b"abc"), end=b"")
    body.feed(head[:-2])
    assert body.fields == {"api_key": "geheim"}
    assert (body.file_name, output.getvalue()) == ("a.txt", b"abc")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (form(('name="a"; filename="1"', b""), ('name="b"; filename="2"', b"")), "two files"),
        (form(('name="source"', b"en"), ('name="source"', b"de")), "the form has source twice"),
        (form(*[(f'name="a{number}"', b"") for number in range(101)]), "more than 100 fields"),
        (form(('name="a"', b"x" * MAX_FIELD_BYTES)), "fields have more than 1048576 bytes"),
        (form((f'name="{"a" * MAX_FIELD_BYTES}"', b"x")), "is not valid multipart"),
        (form(('name="a"', b"\xff")), "is not valid UTF-8"),
        (form(('name="a"; filename="1"', b"abc"), end=b""), "is not valid multipart"),
        (WHOLE + b"x" * MAX_FRAME_BYTES, "more than 1114112 bytes around its file"),
        (b"\r\n" * MAX_FRAME_BYTES + WHOLE, "more than 1114112 bytes around its file"),
        (b"no form", "is not valid multipart"),
        (b"", "is not valid multipart"),
    ],
)
def test_what_is_no_form_of_one_file_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        read(data)
    assert caught.value.problem.status in (400, 413)


def test_a_plain_body_is_the_file() -> None:
    output = io.BytesIO()
    body = PlainBody(output, "a.md")
    body.feed(b"# a")
    body.feed(b"\n")
    body.finish()
    assert (body.file_name, body.num_bytes, output.getvalue()) == ("a.md", 4, b"# a\n")


@pytest.mark.parametrize("announced", ["", "x", "0", f"{100 + MAX_FRAME_BYTES}"])
def test_a_length_that_one_document_and_its_form_may_have_is_let_pass(announced: str) -> None:
    headers = [(b"content-length", announced.encode())] if announced else []
    check_announced(Request({"type": "http", "headers": headers}), max_bytes=100)


@pytest.mark.parametrize("num_bytes", [101 + MAX_FRAME_BYTES, 2**40])
def test_a_longer_one_is_refused(num_bytes: int) -> None:
    headers = [(b"content-length", f"{num_bytes}".encode())]
    with pytest.raises(RequestError) as caught:
        check_announced(Request({"type": "http", "headers": headers}), max_bytes=100)
    problem = caught.value.problem
    assert (problem.status, problem.value, problem.limit) == (413, num_bytes, 100)
    assert problem.message == f"the document has {num_bytes} bytes; the limit is 100"
