"""Whom a request goes to."""

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest

from model.text.languages.tags import LanguagePair
from service.errors import RequestError
from service.models.routes.routing import Offer, RoutingTable
from service.router.choice import (
    candidates,
    choose,
    group_of_dictionaries,
    groups_of_document,
)
from service.router.directory import Directory, GroupState, directory_of
from service.router.wording import DEEPL, LIBRETRANSLATE, V1, Find

PIVOT = "en"


def _group(
    name: str,
    *pairs: str,
    problem: str = "",
    is_unready: bool = False,
    has_answered: bool = True,
) -> GroupState:
    """A group whose checkpoints have one direction each, as "de-en"."""
    offers = tuple(
        Offer(name=pair, pairs=[LanguagePair(source=pair.split("-")[0], target=pair.split("-")[1])])
        for pair in pairs
    )
    return GroupState(
        name=name,
        problem=problem,
        is_unready=is_unready,
        offers=offers,
        table=RoutingTable(offers, pivot=PIVOT),
        has_answered=has_answered,
    )


def _all(*groups: GroupState) -> Directory:
    return directory_of(groups, pivot=PIVOT)


def _find(source: str, target: str, **more: str) -> Find:
    return partial(V1.find, {"source": source, "target": target, **more})


async def _nobody(texts: Sequence[str], tags: Sequence[str]) -> list[str]:
    raise AssertionError("nothing had to be detected")


def _listed(directory: Directory, find: Find, *texts: str, found: Sequence[str] = ()) -> list[str]:
    async def detect(_texts: Sequence[str], tags: Sequence[str]) -> list[str]:
        assert set(found) <= set(tags)
        return list(found)

    detecting = detect if found else _nobody
    return [one.name for one in asyncio.run(choose(directory, find, lambda: texts, detecting))]


def _chosen(directory: Directory, find: Find, *texts: str, found: Sequence[str] = ()) -> str:
    return _listed(directory, find, *texts, found=found)[0]


EUROPE, ASIA = _group("europe", "de-en", "en-fr"), _group("asia", "ja-en", "en-ja")


def test_a_request_goes_to_the_group_of_its_languages() -> None:
    both = _all(EUROPE, ASIA)
    assert _chosen(both, _find("ja", "en"), "a") == "asia"
    assert _chosen(both, _find("de", "fr"), "a") == "europe", "by way of the group's pivot"


def test_one_hop_goes_before_two_and_a_group_that_answers_before_one_that_does_not() -> None:
    straight = _group("straight", "de-fr")
    assert _chosen(_all(EUROPE, straight), _find("de", "fr"), "a") == "straight"
    leaving = _group("straight", "de-fr", problem="shutting down", is_unready=True)
    assert _listed(_all(leaving, EUROPE), _find("de", "fr"), "a") == ["europe", "straight"]
    assert _listed(_all(leaving, ASIA), _find("de", "fr"), "a") == ["straight"], "in its words"


def test_a_group_that_is_away_is_named_and_not_asked() -> None:
    away = _group("straight", "de-fr", problem="silent for 5 seconds")
    assert _listed(_all(away, EUROPE), _find("de", "fr"), "a") == ["europe"]
    refused = "group straight cannot be reached: silent for 5 seconds"
    for find in (_find("de", "fr"), _find("auto", "fr")):
        with pytest.raises(RequestError, match=refused) as caught:
            _chosen(_all(away, ASIA), find, "a")
        assert (caught.value.problem.status, caught.value.problem.code) == (
            503,
            "group_unavailable",
        )
        with pytest.raises(RequestError, match=refused):
            groups_of_document(_all(away, ASIA), find)
    with pytest.raises(RequestError, match=refused):
        group_of_dictionaries(_all(away, ASIA), [("de", "fr")])


def test_texts_of_a_group_that_is_away_are_not_passed_to_one_that_cannot_read_them() -> None:
    away = _group("europe", "de-en", problem="silent for 5 seconds")
    with pytest.raises(RequestError, match="group europe cannot be reached"):
        _chosen(_all(away, ASIA), _find("auto", "en"), "Hallo", found=["de"])
    assert _listed(_all(away, ASIA), _find("auto", "en"), "犬", found=["ja"]) == ["asia"]
    with pytest.raises(RequestError, match="name the source of a document"):
        groups_of_document(_all(away, ASIA), _find("auto", "en"))


def test_a_model_that_is_named_leads_to_its_group() -> None:
    second = _group("second", "de-en", "de-nl")
    assert _chosen(_all(EUROPE, second), _find("de", "nl", model="de-nl"), "a") == "second"
    with pytest.raises(RequestError) as caught:
        candidates(_all(EUROPE, second), _find("de", "en", model="none"))
    assert caught.value.problem.code == "unknown_model"


def test_of_auto_the_texts_decide_among_the_groups_that_could() -> None:
    both = _all(EUROPE, ASIA)
    assert _chosen(both, _find("auto", "en"), "Hallo", found=["de"]) == "europe"
    assert _chosen(both, _find("auto", "en"), "こんにちは", found=["ja"]) == "asia"
    assert _chosen(both, _find("auto", "ja"), "Hello") == "asia", "no other group has the target"


def test_texts_are_read_where_they_decide_alone() -> None:
    def unread() -> Sequence[str]:
        raise AssertionError("nobody needed the texts")

    both = _all(EUROPE, ASIA)
    for find in (_find("de", "en"), _find("auto", "fr")):
        assert asyncio.run(choose(both, find, unread, _nobody))[0].name == "europe"


def test_texts_in_languages_of_several_groups_are_refused() -> None:
    with pytest.raises(RequestError, match="de, ja, which no group translates alone"):
        _chosen(_all(EUROPE, ASIA), _find("auto", "en"), "a", "b", found=["de", "ja"])


def test_languages_that_no_group_has_are_refused_as_by_one_server_with_all() -> None:
    with pytest.raises(RequestError) as caught:
        candidates(_all(EUROPE, ASIA), _find("de", "xx"))
    problem = caught.value.problem
    assert (problem.status, problem.code) == (400, "unsupported_language")
    assert {"de", "en", "fr", "ja"} <= set(str(problem.limit).split(", "))


def test_two_hops_in_two_groups_are_told_to_be_so() -> None:
    with pytest.raises(RequestError, match="both ways of a pivot must be in one group"):
        candidates(_all(EUROPE, ASIA), _find("de", "ja"))


def test_while_a_group_was_never_heard_of_its_languages_may_be_any() -> None:
    silent = _group("late", problem="connection refused", has_answered=False)
    with pytest.raises(RequestError) as caught:
        candidates(_all(EUROPE, silent), _find("ja", "en"))
    assert caught.value.problem.status == 503
    assert "group late cannot be reached: connection refused" in caught.value.problem.message
    assert _chosen(_all(EUROPE, silent), _find("de", "en"), "a") == "europe"


def test_a_document_without_a_source_needs_a_group_that_alone_has_the_target() -> None:
    both = _all(EUROPE, ASIA)
    assert [one.name for one in groups_of_document(both, _find("auto", "fr"))] == ["europe"]
    with pytest.raises(RequestError, match=r"europe, asia\); name the source of a document"):
        groups_of_document(both, _find("auto", "en"))


def test_a_glossary_goes_where_texts_of_its_languages_go() -> None:
    straight = _group("straight", "de-fr")
    both = _all(EUROPE, straight)
    for pair in (("de", "fr"), ("de", "en")):
        group = group_of_dictionaries(both, [pair])
        assert group is not None
        assert group.name == _chosen(both, _find(*pair), "a")
    assert group_of_dictionaries(both, [("de", "fr"), ("en", "fr")]) == EUROPE
    assert group_of_dictionaries(both, [("ja", "fr")]) is None
    assert group_of_dictionaries(both, []) is None


@pytest.mark.parametrize(
    ("wording", "values"),
    [
        (LIBRETRANSLATE, {"q": "Hallo", "source": "DE", "target": "en"}),
        (V1, {"texts": ["Hallo"], "source": "de", "target": "en"}),
        (DEEPL, {"text": ["Hallo"], "source_lang": "DE", "target_lang": "EN-GB"}),
    ],
)
def test_every_contract_says_its_languages_its_own_way(wording, values) -> None:  # type: ignore[no-untyped-def]
    assert wording.texts(values) == ("Hallo",)
    assert _chosen(_all(ASIA, EUROPE), partial(wording.find, values), "Hallo") == "europe"
    for name in (*values, "more"):
        broken = {**values, name: 7}
        assert wording.texts(broken) in ((), ("Hallo",))
