"""Sentences without what stands around them and is no language."""

import pytest

from model.text.languages.tags import LanguagePair
from model.text.marks.finding import find_inner_marks, find_marks
from model.text.marks.inline_codes import is_loose
from model.text.sentences.stretches import stretches

EN_DE = LanguagePair(source="en", target="de")
CODE = "\U00100000"


@pytest.mark.parametrize("text", [CODE, f" {CODE}\n{CODE} "])
def test_where_there_are_inline_codes_alone_there_is_nothing_to_translate(text: str) -> None:
    assert is_loose(CODE)
    assert list(stretches(text, find_marks(text), EN_DE)) == []


def test_bullets_and_emoji_around_a_sentence_are_not_in_it() -> None:
    text = "- 😀 The cat sees {name}. 😀\n7.30"
    found = [text[start:end] for start, end, _ in stretches(text, find_marks(text), EN_DE)]
    assert found == ["The cat sees {name}.", "7.30"]


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("- Read {name} [here](https://a.example/b)", "Read {name} [here](https://a.example/b)"),
        ("[Docs](a.html) are here. 😀", "[Docs](a.html) are here."),
        ("See ![cats](a.png) and **[docs][1]**", "See ![cats](a.png) and **[docs][1]"),
        ("[All of it](a.html)", "All of it"),
        ("😀 [Cats](a.html) 😀", "Cats"),
    ],
)
def test_a_link_that_is_partly_inside_is_whole_inside(text: str, inside: str) -> None:
    ((start, end, marks),) = stretches(text, find_marks(text), EN_DE)
    assert text[start:end] == inside
    assert find_inner_marks(inside) == marks
