import pytest

from model.text.languages.tags import LanguagePair
from service.models.routes.routing import (
    MAX_REMEMBERED,
    Directions,
    Hop,
    Offer,
    Route,
    RoutingTable,
    ranks_of,
)
from support.work import num_lines

EN_DE = LanguagePair(source="en", target="de")
DE_EN = LanguagePair(source="de", target="en")
EN_FR = LanguagePair(source="en", target="fr", target_prefix=("__fr__",))

SMALL = Offer(name="small", pairs=(EN_DE,))
LARGE = Offer(name="large", pairs=(EN_DE, DE_EN, EN_FR))
OTHER = Offer(name="another", pairs=(EN_DE,))


def _best(table: RoutingTable, source: str = "en", target: str = "de") -> str | None:
    hop = table.all.hop(source, target)
    return None if hop is None else hop.checkpoint


@pytest.mark.parametrize("offers", [[SMALL, LARGE, OTHER], [LARGE, OTHER, SMALL]])
def test_who_was_made_for_few_languages_goes_first_then_the_name(offers: list[Offer]) -> None:
    table = RoutingTable(offers)
    assert [hop.checkpoint for hop in table.all.hops("en", "de")] == ["another", "small", "large"]
    assert _best(table, "en", "fr") == "large"


@pytest.mark.parametrize(
    ("preferred", "expected"),
    [
        ((), "another"),
        (("small",), "small"),
        (("large", "small"), "large"),
        (("gone", "small"), "small"),
        (("small", "large", "small"), "small"),
    ],
)
def test_who_is_preferred_goes_before_all_others(preferred: tuple[str, ...], expected: str) -> None:
    assert _best(RoutingTable([LARGE, OTHER, SMALL], preferred=preferred)) == expected


def test_a_hop_has_the_tags_of_its_own_checkpoint() -> None:
    hop = RoutingTable([SMALL, LARGE]).all.hop("en", "fr")
    assert hop == Hop(checkpoint="large", pair=EN_FR)


def test_languages_keep_the_order_in_which_they_were_offered() -> None:
    table = RoutingTable([LARGE, SMALL], preferred=["small"])
    assert list(table.all.languages) == ["en", "de", "fr"]
    assert table.all.targets("en") == ("de", "fr")
    assert table.all.sources("en") == ("de",)
    assert table.all.targets("fr") == table.all.sources("xx") == ()


def test_one_checkpoint_by_name_has_its_own_directions_alone() -> None:
    table = RoutingTable([SMALL, LARGE])
    directions = table.of("small")
    assert directions is not None
    assert list(directions.languages) == ["en", "de"]
    assert directions.hop("de", "en") is None
    assert table.of("none") is None
    assert table.names == ("small", "large")


def test_ranks_are_a_number_for_every_offer() -> None:
    assert ranks_of([LARGE, OTHER, SMALL], ["large"]) == {"large": 0, "another": 1, "small": 2}


def test_a_route_says_where_it_goes_and_through_what() -> None:
    straight = Route(hops=(Hop(checkpoint="small", pair=EN_DE),))
    assert (straight.source, straight.target, straight.pivot) == ("en", "de", None)
    first, second = Hop(checkpoint="large", pair=DE_EN), Hop(checkpoint="large", pair=EN_FR)
    bent = Route(hops=(first, second))
    assert (bent.source, bent.target, bent.pivot) == ("de", "fr", "en")
    assert bent.checkpoints == ("large", "large")


def test_a_look_up_among_forty_thousand_directions_looks_at_few_of_them() -> None:
    """Counted in lines that run, not in time: the table is searched by key."""
    languages = [f"x-{number}" for number in range(200)]
    pairs = tuple(
        LanguagePair(source=source, target=target)
        for source in languages
        for target in languages
        if source != target
    )
    directions = Directions([Offer(name="all", pairs=pairs)], {"all": 0})
    assert directions.hop("x-17", "x-199") is not None
    assert num_lines(lambda: directions.hop("x-17", "x-199")) < 30
    assert len(directions.targets("x-3")) == len(directions.sources("x-3")) == 199


def test_what_was_looked_up_is_remembered_as_long_as_the_table() -> None:
    table, calls = RoutingTable([]), []

    def look_up() -> str:
        calls.append(1)
        return "found"

    assert [table.remembered("asked", look_up) for _ in range(3)] == ["found"] * 3
    assert RoutingTable([]).remembered("asked", look_up) == "found"
    assert len(calls) == 2


def test_what_is_remembered_is_bounded_and_what_was_not_found_is_asked_again() -> None:
    table = RoutingTable([])

    def fail() -> str:
        raise LookupError

    for _ in range(2):
        with pytest.raises(LookupError):
            table.remembered("asked", fail)
    for number in range(MAX_REMEMBERED + 1):
        table.remembered(number, lambda: "found")
    assert table.remembered(0, lambda: "anew") == "anew"
