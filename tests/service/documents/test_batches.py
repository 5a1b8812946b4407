import pytest

from service.documents.batches import (
    MAX_BATCH_CHARACTERS,
    MAX_BATCH_TEXTS,
    MAX_PART_CHARACTERS,
    batches,
    groups,
    parted,
)

LONG = "Nobody waits for the train. " * 400


@pytest.mark.parametrize(
    "text", ["", "Short.", LONG, "x" * 9_000, "没有人等。" * 2_000, " " * 5_000]
)
def test_parts_are_the_text_and_none_is_long(text: str) -> None:
    parts = list(parted(text))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= MAX_PART_CHARACTERS


def test_parts_end_with_sentences() -> None:
    assert all(part.endswith("train. ") for part in parted(LONG))
    assert all(part.endswith("。") for part in parted("没有人等。" * 2_000))


def test_batches_have_all_texts_in_order_and_are_small() -> None:
    texts = [f"Text {number}." * (number % 50) for number in range(500)]
    found = list(batches(texts))
    assert [text for batch in found for text in batch.joined(batch.parts)] == texts
    assert max(len(batch.counts) for batch in found) <= MAX_BATCH_TEXTS
    assert max(sum(map(len, batch.parts)) for batch in found) <= MAX_BATCH_CHARACTERS


def test_a_long_text_is_a_batch_by_itself_and_comes_back_as_one() -> None:
    found = list(batches(["One.", LONG, "Two."]))
    assert [batch.counts for batch in found][0::2] == [(1,), (1,)]
    assert found[1].joined([part.upper() for part in found[1].parts]) == [LONG.upper()]


def test_groups_have_no_more_than_a_request_may_have() -> None:
    parts = ["x" * 1_000] * 10 + ["y"] * 100
    found = list(groups(parts))
    assert [part for group in found for part in group] == parts
    assert max(sum(map(len, group)) for group in found) <= MAX_BATCH_CHARACTERS
    assert max(map(len, found)) <= MAX_BATCH_TEXTS
    assert max(sum(map(len, group)) for group in groups(parts, 1_500)) <= 1_500
