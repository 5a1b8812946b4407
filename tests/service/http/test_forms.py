import tracemalloc
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import RequestError
from service.http.forms import MAX_FORM_FIELDS, decode_form, decode_single

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


def test_a_form_that_is_cut_off_is_refused_wherever_that_is() -> None:
    data = _multipart(_field("q", "a"), _field("source", "en")).removesuffix(b"\r\n")
    assert decode_form(data, MULTIPART, "the form") == {"q": "a", "source": "en"}
    for end in range(len(data)):
        assert "multipart" in _message(data[:end], MULTIPART)


def test_a_content_type_is_read_without_regard_to_case() -> None:
    data = _multipart(_field("q", "a"))
    assert decode_form(data, "Multipart/FORM-Data; Boundary=xyz", "the form") == {"q": "a"}


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


@pytest.mark.parametrize("is_multipart", [False, True])
def test_a_form_may_have_just_as_many_fields_as_the_limit(is_multipart: bool) -> None:
    if is_multipart:
        data, content_type = _multipart(*[_field("q", "a")] * MAX_FORM_FIELDS), MULTIPART
    else:
        data, content_type = b"&".join([b"q=a"] * MAX_FORM_FIELDS), ""
    assert decode_form(data, content_type, "the form") == {"q": ["a"] * MAX_FORM_FIELDS}


def test_values_may_be_empty_and_keep_their_order() -> None:
    assert decode_form(b"q=&source=en", "", "the form") == {"q": "", "source": "en"}
    assert decode_form(b"", "", "the form") == {}
    assert decode_form(b"q=b&q=a&q=", "", "the form") == {"q": ["b", "a", ""]}
    assert decode_form(_multipart(_field("q", "")), MULTIPART, "the form") == {"q": ""}


def test_values_that_stand_once_are_strings_and_a_second_one_is_named() -> None:
    assert decode_single(b"", "the query string") == {}
    found = decode_single(b"target=zh-Hans&name=a+b.txt&source=", "the query string")
    assert found == {"target": "zh-Hans", "name": "a b.txt", "source": ""}
    for query in (b"target=de&target=zh", b"source=en&target=zh&target=zh"):
        with pytest.raises(RequestError, match="the query string has target twice") as caught:
            decode_single(query, "the query string")
        problem = caught.value.problem
        assert (problem.status, problem.value, problem.limit) == (400, "target", 1)
    name = b"n" * 50
    with pytest.raises(RequestError, match="has a name twice") as caught:
        decode_single(name + b"=1&" + name + b"=2", "the query string")
    assert caught.value.problem.value == 50


def test_each_part_of_a_multipart_form_has_its_own_name_and_text() -> None:
    parts = (
        b'CONTENT-DISPOSITION: form-data; name="q"\r\nContent-Type: text/plain\r\n\r\nlong text',
        b"Content-Type: text/plain\r\n\r\nb",
        b'Content-Type: text/plain\r\ncontent-disposition: form-data; name="c"\r\n\r\nc',
    )
    found = decode_form(_multipart(*parts), MULTIPART, "the form")
    assert found == {"q": "long text", "": "b", "c": "c"}


@given(st.binary(max_size=300), st.sampled_from(["", MULTIPART]))
def test_any_bytes_are_a_form_or_a_400(data: bytes, content_type: str) -> None:
    assert _status_of(data, content_type) in (None, 400)


def _status_of(data: bytes, content_type: str) -> int | None:
    try:
        decode_form(data, content_type, "the form")
    except RequestError as error:
        return error.problem.status
    return None


@given(
    st.lists(
        st.sampled_from([b"%41", b"%e4%BD%a0", b"%", b"%%", b"%4", b"%zz", b"=", b"==", b"=41"])
        | st.sampled_from(
            [b"+", b"&", b"\n", b"\r\n", b" ", b"%\n", b"_", b"%0d%0a", "你".encode()]
        )
        | st.text(max_size=3).map(str.encode)
    )
)
def test_fields_are_those_that_the_standard_library_finds(parts: list[bytes]) -> None:
    data = b"".join(parts)
    values = parse_qs(data.decode(), keep_blank_values=True, errors="replace")
    if "\ufffd" not in str(values):
        expected = {name: found if len(found) > 1 else found[0] for name, found in values.items()}
        assert decode_form(data, "", "the form") == expected


def test_escapes_cost_no_object_each() -> None:
    text = b"%41" * 300_000
    decode_form(b"q=%41", "", "the form")
    tracemalloc.start()
    try:
        values = decode_form(b"q=" + text, "", "the form")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert values == {"q": "A" * 300_000}
    assert peak < 6 * len(text)


def test_a_million_stray_percent_signs_are_text() -> None:
    for text in ("%" * 900_000, "%\n" * 300_000):
        assert decode_form(b"q=" + text.encode(), "", "the form") == {"q": text}
