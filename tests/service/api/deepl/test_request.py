"""Values of DeepL's contract that are lists in one string; the contract is tests/contract."""

import pytest

from service.api.deepl import request
from service.errors import RequestError
from service.settings import Settings


def test_names_between_commas_are_bounded_as_those_of_a_list_are() -> None:
    hundred = frozenset(f"x{number}" for number in range(100))
    assert request._tag_names({"t": ",".join(hundred)}, "t") == hundred
    assert request._tag_names({"t": ["a, b", "c,", ""]}, "t") == {"a", "b", "c"}
    for given in (",".join(["a"] * 101), ["a,b"] * 51, ["a"] * 101):
        with pytest.raises(RequestError, match="'t' not supported; it must be at most 100"):
            request._tag_names({"t": given}, "t")


@pytest.mark.parametrize(("max_texts", "told"), [(10, 10), (128, 50)])
def test_as_many_texts_are_told_as_the_server_takes(max_texts: int, told: int) -> None:
    operation = request.translate_operation(Settings(max_texts=max_texts))
    form = operation["requestBody"]["content"]["application/x-www-form-urlencoded"]
    assert form["schema"]["properties"]["text"]["maxItems"] == told
