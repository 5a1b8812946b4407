import pytest

from model.text.languages.tags import LanguagePair
from service.models.routes.pivot import find_route, reachable, sources
from service.models.routes.routing import Offer, RoutingTable


def _offer(name: str, *languages: tuple[str, str]) -> Offer:
    pairs = tuple(LanguagePair(source=source, target=target) for source, target in languages)
    return Offer(name=name, pairs=pairs)


OFFERS = (
    _offer("de-en", ("de", "en")),
    _offer("en-de", ("en", "de")),
    _offer("en-fr", ("en", "fr")),
    _offer("en-zh", ("en", "zh")),
    _offer("zh-fr", ("zh", "fr")),
)
TABLE = RoutingTable(OFFERS, pivot="en")


@pytest.mark.parametrize(
    ("source", "target", "checkpoints"),
    [
        ("de", "en", ("de-en",)),
        ("de", "fr", ("de-en", "en-fr")),
        ("zh", "fr", ("zh-fr",)),
        ("de", "de", None),
        ("fr", "de", None),
        ("zh", "de", None),
        ("de", "xx", None),
        ("en", "en", None),
    ],
)
def test_straight_goes_before_a_pivot_and_a_pivot_before_nothing(
    source: str, target: str, checkpoints: tuple[str, ...] | None
) -> None:
    route = find_route(TABLE, source, target)
    assert (None if route is None else route.checkpoints) == checkpoints
    if route is not None:
        assert (route.source, route.target) == (source, target)
        assert route.pivot == ("en" if len(route.hops) == 2 else None)


def test_without_a_pivot_there_is_one_hop_or_none() -> None:
    table = RoutingTable(OFFERS)
    assert find_route(table, "de", "fr") is None
    assert reachable(table, "de") == ["en"]


def test_the_pivot_is_the_one_that_was_asked_for() -> None:
    table = RoutingTable([*OFFERS, _offer("de-zh", ("de", "zh"))], pivot="zh")
    route = find_route(table, "de", "fr")
    assert route is not None
    assert (route.pivot, route.checkpoints) == ("zh", ("de-zh", "zh-fr"))


def test_one_checkpoint_may_be_both_hops_and_each_hop_has_the_best() -> None:
    many = _offer("many", ("de", "en"), ("en", "fr"), ("en", "it"))
    table = RoutingTable([*OFFERS, many], pivot="en", preferred=["many"])
    route = find_route(table, "de", "it")
    assert route is not None
    assert route.checkpoints == ("many", "many")


@pytest.mark.parametrize("source", ["de", "en", "fr", "zh", "xx"])
def test_what_is_reachable_is_what_there_is_a_route_to(source: str) -> None:
    every = [*TABLE.all.languages, "xx"]
    found = [target for target in every if find_route(TABLE, source, target)]
    assert sorted(reachable(TABLE, source)) == sorted(found)


def test_what_is_reached_straight_is_listed_first() -> None:
    assert reachable(TABLE, "de") == ["en", "fr", "zh"]


@pytest.mark.parametrize("target", ["de", "en", "fr", "zh", "xx"])
def test_the_sources_of_a_target_are_what_there_is_a_route_from(target: str) -> None:
    found = [source for source in TABLE.all.languages if find_route(TABLE, source, target)]
    assert sorted(sources(TABLE, target)) == sorted(found)


def test_the_pivot_is_the_first_source_and_a_language_is_none_of_its_own() -> None:
    assert sources(TABLE, "fr") == ["en", "zh", "de"]
    table = RoutingTable([_offer("all", ("de", "en"), ("en", "de"), ("de", "de"))], pivot="en")
    assert sources(table, "de") == ["en"]
