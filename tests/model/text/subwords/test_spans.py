from collections.abc import Sequence

import pytest

from model.text.subwords.spans import MAX_CHARACTERS, token_spans


def _cut(pieces: Sequence[str | None], text: str) -> list[str | None]:
    spans = token_spans(pieces, text)
    assert len(spans) == len(pieces)
    return [None if span is None else text[slice(*span)] for span in spans]


@pytest.mark.parametrize(
    ("pieces", "text", "expected"),
    [
        (["▁The", "▁ca", "t", "s", "."], "The  cats.", ["The", "ca", "t", "s", "."]),
        (["The</w>", "ca", "ts</w>"], "The cats", ["The", "ca", "ts"]),
        (["ca@@", "ts"], "cats", ["ca", "ts"]),
        (["▁", "你好", "，", "世界"], "你好，世界", [None, "你好", "，", "世界"]),
        ([None, "▁Go", None], "Go", [None, "Go", None]),
        (["▁Stop", "▁now"], "STOP NOW", ["STOP", "NOW"]),
        ([], "", []),
    ],
)
def test_pieces_are_found_where_they_are(
    pieces: list[str | None], text: str, expected: list[str | None]
) -> None:
    assert _cut(pieces, text) == expected


def test_pieces_that_stand_for_a_mark_share_it() -> None:
    pieces = ["▁Hello", "▁X", "1", "!", None]
    assert _cut(pieces, "Hello {name}!") == ["Hello", "{name}", "{name}", "!", None]


def test_bytes_unknown_and_normalised_characters_have_what_is_left() -> None:
    pieces = ["▁a", "▁", "<0xE7>", "<0x8C>", "<0xAB>", "▁b", "...", "", "▁c"]
    assert _cut(pieces, "a 猫 b… ☃ c") == ["a", *["猫"] * 4, "b", "… ☃", "… ☃", "c"]


def test_what_is_not_there_has_no_place() -> None:
    assert _cut(["▁a", "▁", "▁b"], "a b") == ["a", None, "b"]
    assert _cut(["▁x"], "") == [None]


def test_a_long_text_is_found_if_nothing_was_changed_in_it() -> None:
    words = ["▁word"] * MAX_CHARACTERS
    text = " ".join(["word"] * MAX_CHARACTERS)
    assert token_spans(words, text)[-1] == (len(text) - 4, len(text))
    assert set(token_spans([*words, "▁X1"], text + " {name}")) == {None}


def test_texts_that_would_be_compared_for_ever_are_compared_in_part() -> None:
    spans = token_spans(["▁a", "①"] * 500, "a1" * 500)
    assert spans[0] == (0, 1)
    assert set(spans[1:]) == {(1, 1000)}
