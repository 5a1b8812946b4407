"""What becomes of a stretch with many marks, and that its work grows as the stretch does."""

import pytest

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.text.drafts.tries import Tries
from model.text.marks.finding import find_inner_marks
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint
from support.work import num_lines


@pytest.fixture(scope="module")
def tries(tmp_path_factory: pytest.TempPathFactory) -> Tries:
    directory = write_tiny_checkpoint(tmp_path_factory.mktemp("tries") / "tiny")
    manifest = read_manifest(directory)
    return Tries(load_tokenizer(directory, manifest), manifest.limits)


@pytest.mark.parametrize("part", ["a😀", "<b>a</b> ", "{x} a ", "a*b ", "a\U00108000", "%sa "])
def test_twice_the_marks_are_about_twice_the_work(tries: Tries, part: str) -> None:
    def work(num_parts: int) -> int:
        text = (part * num_parts).strip()
        marks = find_inner_marks(text)
        return num_lines(lambda: list(tries.first(text, marks, EN_ZH)))

    assert work(1600) < 3 * work(800)


def shown(tries: Tries, text: str) -> list[tuple[str, tuple[str, ...], str | None]]:
    """What the network reads of each piece of a text, the marks that it does not, the casing."""
    placed = tries.first(text, find_inner_marks(text), EN_ZH)
    return [
        (one.text, (), None)
        if one.carried is None
        else (one.carried.shown, one.carried.marks, one.carried.casing)
        for one, _ in placed
    ]


def test_what_a_vocabulary_cannot_write_is_carried_in_pieces_of_a_long_sentence_too(
    tries: Tries,
) -> None:
    text = "The cat sees the river and добро " + "and my friend sees the river " * 30
    pieces = shown(tries, text.strip())
    assert len(pieces) > 1
    assert [marks for _, marks, _ in pieces if marks] == [("добро",)]


def test_a_word_that_a_vocabulary_cannot_write_is_split_around_where_it_is_lost(
    tries: Tries,
) -> None:
    ((first, _),) = tries.first("The cat sees добро again.", [], EN_ZH)
    ((second, _),) = tries.next(first, [], ("marks",), EN_ZH)
    placed = tries.next(second, [], ("marks",), EN_ZH)
    assert [(one.text, one.is_verbatim) for one, _ in placed] == [
        ("The cat sees", False),
        ("добро", True),
        ("again.", False),
    ]


@pytest.mark.parametrize("character", ["\ufffd", "\u2581"])
def test_a_character_that_is_read_as_a_space_is_carried(tries: Tries, character: str) -> None:
    assert shown(tries, f"It costs 5 {character} here.") == [
        ("It costs 5 here.", (character,), None)
    ]


def test_a_unit_in_small_letters_is_carried_through_capitals(tries: Tries) -> None:
    text = "MAXIMUM LOAD IS 500 kg FOR THIS DOOR."
    assert shown(tries, text) == [("Maximum load is 47 for this door.", ("500 kg",), "upper")]
    assert shown(tries, "Maximum load is 500 kg.") == [("Maximum load is 500 kg.", (), None)]


@pytest.mark.parametrize("mark", ["⇦\ufe0f", "\ufe0f"])
def test_a_sign_is_one_with_what_it_is_to_be_printed_like(tries: Tries, mark: str) -> None:
    ((segment, _),) = tries.first(f"The cat {mark} sees", [], EN_ZH)
    assert segment.carried is not None
    assert [one.mark for one in segment.carried.loose] == [mark]
    assert segment.carried.stand_ins == ()


def test_a_time_that_lost_its_half_of_the_day_comes_again_as_one_that_a_network_copies(
    tries: Tries,
) -> None:
    text = "The cat sees 3:30 pm and 5 cats."
    ((first, _),) = tries.first(text, [], EN_ZH)
    ((second, _),) = tries.next(first, [], ("numbers",), EN_ZH)
    assert second.carried is not None
    assert second.carried.shown == "The cat sees 14:30 and 47 cats."
    assert [one.mark for one in second.carried.stand_ins] == ["下午3:30", "5"]
