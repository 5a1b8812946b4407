from model.text.languages.tags import LanguagePair
from service.labels import (
    MAX_FIRST,
    MAX_PAIRS,
    MAX_UNLOADED,
    NONE,
    OTHER,
    SEVERAL,
    Served,
    ServedLabels,
    first_served,
    served_by,
)


def _pairs(checkpoint: str, number: int) -> list[Served]:
    return [Served(pair=f"en>x{index:02}", checkpoint=checkpoint) for index in range(number)]


def test_a_pair_is_told_by_its_two_languages_and_its_checkpoint() -> None:
    pair = LanguagePair(source="en", target="zh-Hans")
    assert served_by(pair, "small") == Served(pair="en>zh-Hans", checkpoint="small")


def test_what_is_loaded_has_labels_of_its_own_and_nothing_else_has() -> None:
    labels = ServedLabels()
    [loaded] = _pairs("a", 1)
    assert labels.load([loaded]) == []
    assert labels.bounded(loaded) == loaded
    assert labels.bounded(None) == NONE
    assert labels.bounded(SEVERAL) == SEVERAL
    assert labels.bounded(Served(pair="en>de", checkpoint="never")) == OTHER


def test_the_same_names_loaded_again_lose_nothing() -> None:
    labels = ServedLabels()
    loaded = _pairs("a", 3)
    for _ in range(2 * MAX_UNLOADED):
        assert labels.load(loaded) == []


def test_what_is_loaded_no_more_keeps_its_labels_until_enough_others_have_gone() -> None:
    labels = ServedLabels()
    first, second, third = _pairs("a", 2), _pairs("b", MAX_UNLOADED), _pairs("c", 1)
    labels.load(first)
    assert labels.load(second) == []
    assert labels.bounded(first[0]) == first[0]
    assert labels.load(third) == first, "they went first"
    assert labels.bounded(first[0]) == OTHER
    assert labels.bounded(second[0]) == second[0]
    assert labels.load(first) == [second[0]]
    assert labels.bounded(first[0]) == first[0]


def test_few_pairs_have_series_from_the_start_and_many_have_none() -> None:
    pairs = [LanguagePair(source="en", target=f"x-{number}") for number in range(MAX_FIRST)]
    assert len(first_served({"a": pairs[:-1], "b": pairs[-1:]})) == MAX_FIRST
    assert first_served({"a": pairs, "b": pairs[:1]}) == []


def test_of_many_pairs_those_that_are_asked_for_first_have_labels_of_their_own() -> None:
    labels = ServedLabels()
    labels.load([], on_demand=["a", "b"])
    pairs = _pairs("a", MAX_PAIRS + 5)
    own = [labels.bounded(one) for one in pairs]
    rest = Served(pair="other", checkpoint="a")
    assert own == [*pairs[:MAX_PAIRS], *[rest] * 5]
    assert labels.bounded(pairs[0]) == pairs[0]
    assert labels.bounded(_pairs("b", 1)[0]) == Served(pair="other", checkpoint="b")
    assert labels.bounded(_pairs("c", 1)[0]) == OTHER


def test_another_load_keeps_the_labels_of_what_is_loaded_still() -> None:
    labels = ServedLabels()
    labels.load([], on_demand=["a", "b"])
    first, second = _pairs("a", 2), _pairs("b", 1)
    for one in (*first, *second):
        labels.bounded(one)
    assert labels.load([], on_demand=["b"]) == []
    assert labels.bounded(first[0]) == first[0], "it went, and its series are still there"
    dropped = [
        one for number in range(MAX_UNLOADED + 1) for one in labels.load(_pairs(f"n{number}", 1))
    ]
    assert set(first) <= set(dropped)
    assert labels.bounded(first[0]) == OTHER
