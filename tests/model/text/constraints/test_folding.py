"""Texts in their common spelling, and the places of its characters."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.text.constraints.folding import Folded

TEXTS = st.text(
    st.sampled_from(
        "aA é\u0301\u0308u\u00a0\u3000’'\u2011-\u00ad\u2060ＡＢ猫가\u1100\u1161\u11a8İ\n\t"
    ),
    max_size=12,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text", "plain text"),
        ("a  b\u00a0 \u3000c", "a b c"),
        ("e\u0301 A\u030a \u212b \u1112\u1161\u11ab", "é Å Å 한"),
        ("don’t e\u2010mail", "don't e-mail"),
        ("ＡＰＩ１（ａ）", "API1(a)"),
        ("ser\u00adver\u2060s\ufeff", "servers"),
        ("a\tb\r\nc\u200bd", "a\tb\r\nc\u200bd"),
        ("\u0301a q\u0323\u0307", "\u0301a q\u0323\u0307"),
    ],
)
def test_common_spelling(text: str, expected: str) -> None:
    assert Folded(text).text == expected


@given(TEXTS)
@settings(max_examples=500, deadline=None)
def test_places_are_those_of_the_text(text: str) -> None:
    folded = Folded(text)
    assert len(folded.small) == len(folded.text)
    assert Folded(folded.text).text == folded.text
    assert unicodedata.is_normalized("NFC", folded.text)
    spans = [folded.span(index, index + 1) for index in range(len(folded.text))]
    assert spans == sorted(spans)
    for index, (start, end) in enumerate(spans):
        assert 0 <= start < end <= len(text)
        assert folded.text[index] in Folded(text[start:end]).text
        assert spans[folded.first(start)][0] == start
        assert spans[folded.behind(end) - 1][1] == end


@given(TEXTS)
@settings(max_examples=200, deadline=None)
def test_a_place_in_between_is_before_what_follows_and_behind_what_was(text: str) -> None:
    folded = Folded(text)
    spans = [folded.span(index, index + 1) for index in range(len(folded.text))]
    for place in range(len(text) + 1):
        assert folded.first(place) == sum(start < place for start, _ in spans)
        assert folded.behind(place) == sum(end <= place for _, end in spans)
