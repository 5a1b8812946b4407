from collections.abc import Sequence

import pytest

from model.text.marks.carrying import carry, restore
from model.text.marks.finding import find_marks

NAMES = ("X1", "X2", "X3")


@pytest.mark.parametrize(
    ("text", "words", "alignment", "is_lost"),
    [
        ("see <b>this</b> now", ["jetzt"], [2], True),
        ("<b>x</b> y", [], [], True),
        ("see <b>this</b> now", ["dies", "jetzt"], [1, 2], False),
        ("see [this](x) now", ["jetzt"], [2], True),
        ("see **this** now", ["jetzt"], [2], True),
        ("[b]this[/b] now", ["jetzt"], [1], True),
        ("a 😀 b 😀 c", ["c"], [2], False),
        ("a<br>b</b> c", ["c"], [2], True),
        ("Save</0><1>Cancel", ["Abbrechen"], [1], True),
        ("Save</0><1>Cancel", ["Sichern"], [0], True),
        ("Save</0><1>Cancel", ["Sichern", "Abbrechen"], [0, 1], False),
        ("Name</td><td>Age</td><td>City", ["Name", "Stadt"], [0, 2], True),
        ("this</b> now", ["jetzt"], [1], True),
        ("this** now", ["jetzt"], [1], True),
        ("see <b>this", ["sieh"], [0], True),
        ("see <b>this", ["dies"], [1], False),
        ("<hr>see <b>this</b>", ["dies"], [1], False),
        ("press <b>Save</b> now", ["auf", ",", "jetzt"], [0, 1, 2], True),
        ("press <b>percent</b> now", ["auf", "%", "jetzt"], [0, 1, 2], False),
        ("press <b>,</b> now", ["auf", ".", "jetzt"], [0, 1, 2], False),
        ("first<br>second", ["zweites"], [0], False),
        ("first<img src=a>second", ["zweites"], [0], False),
        ("first <br><b>second", ["erstes"], [0], True),
    ],
)
def test_a_tag_that_stands_around_nothing_was_lost(
    text: str, words: Sequence[str], alignment: Sequence[int], is_lost: bool
) -> None:
    carried = carry(text, find_marks(text), NAMES)
    assert carried is not None
    ends = [len(" ".join(words[: number + 1])) for number in range(len(words))]
    sources = [len(carried.shown[: one.place].split()) for one in carried.loose]
    restored = restore(carried, " ".join(words), ends=ends, sources=sources, alignment=alignment)
    assert restored.is_lost is is_lost
