from starlette.datastructures import Headers
from starlette.types import Scope

from service.headers import header_of, headers_of

SCOPE: Scope = {
    "type": "http",
    "headers": [(b"host", b"a"), (b"x-mine", b"first \xe4"), (b"x-mine", b"second")],
}


def test_the_first_header_of_a_name_is_found_as_by_a_mapping() -> None:
    for name in ("host", "x-mine"):
        assert header_of(SCOPE, name.encode()) == Headers(scope=SCOPE)[name]


def test_a_header_that_is_not_there_has_a_default() -> None:
    assert header_of(SCOPE, b"authorization") == ""
    assert header_of(SCOPE, b"authorization", "none") == "none"


def test_all_headers_of_a_name_are_found_in_order() -> None:
    assert headers_of(SCOPE, b"x-mine") == Headers(scope=SCOPE).getlist("x-mine")
    assert headers_of(SCOPE, b"x-forwarded-for") == []
