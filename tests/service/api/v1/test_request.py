"""What is refused before all of it is looked at; the contract as a whole is tests/contract."""

import json

import pytest

from service.api.v1 import control
from service.api.v1.control import glossary_of_json
from service.api.v1.request import TranslateRequest, request_body, validated
from service.errors import RequestError
from service.settings import Settings

SETTINGS = Settings(max_texts=5)
FIELDS = {"texts": ["a"] * 5, "target": "zh"}


def refusal(**values: object) -> RequestError:
    with pytest.raises(RequestError) as caught:
        validated(FIELDS | values, SETTINGS, TranslateRequest)
    return caught.value


@pytest.mark.parametrize("prefix", [1, "", "a"])
def test_no_beginning_is_looked_at_where_there_are_more_than_texts_may_be(
    prefix: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(control, "without_surrogates", lambda text: seen.append(text) or text)
    problem = refusal(target_prefix=[prefix] * 1_000).problem
    assert (problem.status, problem.value, problem.limit) == (400, 1_000, 5)
    assert problem.message == "target_prefix: texts is 1000; it must be at most 5"
    assert seen == []
    assert validated(FIELDS | {"target_prefix": [""] * 5}, SETTINGS, TranslateRequest)


def test_the_limit_of_beginnings_is_told() -> None:
    schema = request_body(SETTINGS)["content"]["application/json"]["schema"]
    either = schema["properties"]["target_prefix"]["anyOf"]
    assert [one.get("maxItems") for one in either] == [None, 5, None]
    assert "half as many tokens" in schema["properties"]["target_prefix"]["description"]


def test_the_limits_of_a_search_are_told_as_they_are_here() -> None:
    body = request_body(Settings(max_beam_size=4, beam_size=2))
    properties = body["content"]["application/json"]["schema"]["properties"]
    assert properties["alternatives"]["maximum"] == 3
    for name in ("beam_size", "beam_groups"):
        assert [one.get("maximum") for one in properties[name]["anyOf"]] == [4, None]


@pytest.mark.parametrize("term", [{"source": "a", "target": "b"}, {"source": "a", "target": ""}])
def test_of_the_names_in_an_entry_that_are_unknown_one_is_looked_at(
    term: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: list[int] = []
    read = control.request_error

    def counted(error: control.ValidationError, *, within: str | None = None) -> RequestError:
        numbers.append(error.error_count())
        return read(error, within=within)

    monkeypatch.setattr("service.api.v1.request.request_error", counted)
    monkeypatch.setattr(control, "request_error", counted)
    entry = {f"x{number}": 1 for number in range(1_000)} | term
    said = "glossary[0].x0 is unknown" if term["target"] else "glossary[0].target has 0 characters"
    assert str(refusal(glossary=[entry])).startswith(said)
    with pytest.raises(RequestError) as caught:
        glossary_of_json(json.dumps([entry]))
    assert str(caught.value).startswith(said)
    assert max(numbers) <= 2
