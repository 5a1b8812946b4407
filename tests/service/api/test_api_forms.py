import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.forms import MAX_FORM_FIELDS, decode_form
from service.errors import RequestError

MULTIPART = "multipart/form-data; boundary=xyz"


def _multipart(*parts: bytes) -> bytes:
    return b"".join(b"--xyz\r\n" + part + b"\r\n" for part in parts) + b"--xyz--\r\n"


def _field(name: str, value: str) -> bytes:
    return f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}'.encode()


def _message(data: bytes, content_type: str) -> str:
    with pytest.raises(RequestError) as caught:
        decode_form(data, content_type, "the form")
    assert caught.value.problem.status == 400
    return caught.value.problem.message


def test_a_multipart_form_has_the_values_of_its_fields() -> None:
    data = _multipart(_field("q", "Zeile 1\r\nüber"), _field("source", "en"))
    assert decode_form(data, MULTIPART, "the form") == {"q": "Zeile 1\r\nüber", "source": "en"}


def test_a_multipart_field_that_comes_twice_has_a_list() -> None:
    data = _multipart(_field("q", "a"), _field("q", ""))
    assert decode_form(data, MULTIPART, "the form") == {"q": ["a", ""]}


def test_a_charset_that_would_be_slow_or_no_text_is_not_obeyed() -> None:
    data = _multipart(_field("q", "a"))
    assert decode_form(data, MULTIPART + "; charset=punycode", "the form") == {"q": "a"}


def test_a_file_is_refused() -> None:
    part = b'Content-Disposition: form-data; name="q"; filename="a.txt"\r\n\r\nx'
    assert "file" in _message(_multipart(part), MULTIPART)


@pytest.mark.parametrize(
    "content_type",
    ["multipart/form-data", "multipart/form-data; boundary=", 'multipart/form-data; boundary="é"'],
)
def test_a_boundary_that_is_none_is_refused(content_type: str) -> None:
    assert "boundary" in _message(b"--xyz--", content_type)


def test_a_broken_multipart_form_is_refused() -> None:
    assert "multipart" in _message(b"not a form at all", MULTIPART)


@pytest.mark.parametrize("data", [b"q=\xff", b"q=%ff", b"%ff=q"])
def test_a_form_that_is_not_utf8_is_refused(data: bytes) -> None:
    assert "UTF-8" in _message(data, "")


@pytest.mark.parametrize("is_multipart", [False, True])
def test_too_many_fields_are_refused(is_multipart: bool) -> None:
    number = MAX_FORM_FIELDS + 1
    if is_multipart:
        data, content_type = _multipart(*[_field("q", "a")] * number), MULTIPART
    else:
        data, content_type = b"&".join([b"q=a"] * number), ""
    assert str(MAX_FORM_FIELDS) in _message(data, content_type)


@given(st.binary(max_size=300), st.sampled_from(["", MULTIPART]))
def test_any_bytes_are_a_form_or_a_400(data: bytes, content_type: str) -> None:
    assert _status_of(data, content_type) in (None, 400)


def _status_of(data: bytes, content_type: str) -> int | None:
    try:
        decode_form(data, content_type, "the form")
    except RequestError as error:
        return error.problem.status
    return None
