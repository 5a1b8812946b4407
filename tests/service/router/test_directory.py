"""What a group's list of models means for routes."""

import json
from typing import Any

import pytest

from model.text.languages.tags import LanguagePair
from service.models.routes.routing import Offer, RoutingTable
from service.router.directory import GroupState, directory_of, offers_of


def _model(name: str, **fields: Any) -> dict[str, Any]:
    pairs = [{"source": "de", "target": "en"}]
    return {"name": name, "state": "loaded", "pairs": pairs} | fields


def _listed(*models: dict[str, Any]) -> bytes:
    return json.dumps({"models": models, "faulty": []}).encode()


def test_what_is_loaded_or_asleep_is_offered_and_what_is_unloaded_is_not() -> None:
    body = _listed(_model("a"), _model("b", state="asleep"), _model("c", state="unloaded"))
    assert [offer.name for offer in offers_of(body)] == ["a", "b"]


def test_a_model_that_lists_languages_alone_has_all_directions_between_two() -> None:
    body = _listed(_model("a", pairs=None, sources=["de", "en"], targets=["en", "fr"]))
    [offer] = offers_of(body)
    found = {(source, target) for source, targets in offer.by_source.items() for target in targets}
    assert found == {("de", "en"), ("de", "fr"), ("en", "fr")}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"models": [{}]}',
        _listed(_model("a", pairs=[{"source": "de"}])),
        _listed(_model("a", pairs=[{"source": "de de", "target": "en"}])),
        b"[" * 100_000,
    ],
)
def test_what_is_no_list_of_models_is_told_so(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        offers_of(body)


def test_models_of_one_name_in_two_groups_are_both_in_the_table_of_all() -> None:
    groups = []
    for name, pair in (("europe", ("de", "en")), ("asia", ("ja", "en"))):
        offers = (Offer(name="m", pairs=[LanguagePair(source=pair[0], target=pair[1])]),)
        table = RoutingTable(offers)
        groups.append(GroupState(name=name, offers=offers, table=table, has_answered=True))
    directory = directory_of(groups, pivot=None)
    assert directory.table.names == ("m", "m (asia)")
    assert set(directory.languages) == {"de", "en", "ja"}
    assert directory.up == tuple(groups)
    assert directory.answering == directory.up
    assert directory.away == ()


def test_a_group_that_says_that_it_is_not_ready_answers_and_a_silent_one_is_away() -> None:
    well = GroupState(name="well", has_answered=True)
    unready = GroupState(name="leaves", has_answered=True, problem="shutting down", is_unready=True)
    silent = GroupState(name="silent", has_answered=True, problem="silent for 5 seconds")
    starting = GroupState(name="new", problem="the engine is starting", is_unready=True)
    directory = directory_of((silent, unready, well, starting), pivot=None)
    assert directory.up == (well,)
    assert directory.answering == (well, unready)
    assert directory.away == (silent, starting)
