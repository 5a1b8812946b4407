"""What the values of an upload of our own contract may be, without a server."""

from types import SimpleNamespace
from typing import Any

import pytest

from model.text.languages.tags import LanguagePair
from service.api.v1.documents import V1Documents
from service.errors import RequestError
from service.models.routes.routing import Offer, RoutingTable

PAIR = LanguagePair(source="en", target="zh-Hans")
VALUES = {"source": "en", "target": "zh", "model": "tiny", "glossary": "[]", "name": "a.txt"}


def _contract() -> V1Documents:
    front: Any = SimpleNamespace(
        table=RoutingTable([Offer(name="tiny", pairs=(PAIR,))]), detection=None
    )
    return V1Documents(front=front)


def test_all_fields_that_are_described_are_taken() -> None:
    asked = _contract().parse(VALUES, "a.txt")
    assert (asked.kind, asked.source, asked.target, asked.model) == ("txt", "en", "zh-Hans", "tiny")


@pytest.mark.parametrize("name", ["modle", "glosary", "taget", ""])
def test_a_field_that_is_unknown_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(RequestError) as refused:
        _contract().parse({**VALUES, name: ""}, "a.txt")
    assert refused.value.problem.status == 400
    assert refused.value.problem.message == f"field {name} is unknown"


def test_a_name_like_a_text_is_not_repeated() -> None:
    with pytest.raises(RequestError, match="a field is unknown"):
        _contract().parse({**VALUES, "The cat sees the river. " * 9: ""}, "a.txt")
