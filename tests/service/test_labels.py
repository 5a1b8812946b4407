from model.text.language import LanguagePair
from service.labels import MAX_GONE, NONE, OTHER, Served, ServedLabels, served_by


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
    assert labels.bounded(Served(pair="en>de", checkpoint="never")) == OTHER


def test_the_same_names_loaded_again_lose_nothing() -> None:
    labels = ServedLabels()
    loaded = _pairs("a", 3)
    for _ in range(2 * MAX_GONE):
        assert labels.load(loaded) == []


def test_what_is_loaded_no_more_keeps_its_labels_until_enough_others_have_gone() -> None:
    labels = ServedLabels()
    first, second, third = _pairs("a", 2), _pairs("b", MAX_GONE), _pairs("c", 1)
    labels.load(first)
    assert labels.load(second) == []
    assert labels.bounded(first[0]) == first[0]
    assert labels.load(third) == first, "they went first"
    assert labels.bounded(first[0]) == OTHER
    assert labels.bounded(second[0]) == second[0]
    assert labels.load(first) == [second[0]]
    assert labels.bounded(first[0]) == first[0]
