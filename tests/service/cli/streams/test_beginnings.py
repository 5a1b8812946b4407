from collections.abc import Iterator
from itertools import count

import pytest

from service.cli.streams import beginnings
from service.cli.streams.beginnings import beginning


def test_the_first_texts_with_letters_are_taken_and_no_more() -> None:
    texts = (f"猫{number}" if number % 3 == 0 else f"{number}." for number in count())
    assert beginning(texts) == "\n".join(f"猫{number}" for number in range(0, 150, 3))
    assert next(texts) == "148."


@pytest.mark.parametrize("blank", ["", " \t", "12. 34 %", "___", "- - -"])
def test_a_long_beginning_without_letters_is_passed_over(blank: str) -> None:
    assert beginning([blank] * 5_000 + ["你好", blank]) == "你好"


def test_texts_without_letters_say_nothing_and_too_many_are_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(beginnings, "_MAX_TEXTS", 9)
    assert (beginning([]), beginning(["7"] * 9)) == ("", "")

    def several(first: str) -> Iterator[str]:
        yield first
        yield from ["7"] * 8
        yield "a cat"

    assert beginning(several("7")) is None
    assert beginning(several("a dog")) == "a dog"
