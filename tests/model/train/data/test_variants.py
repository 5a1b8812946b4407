from typing import get_args

import pytest

from model.train.config.data import Variant
from model.train.data.variants import NO_FORM, vary


@pytest.mark.parametrize(
    ("variant", "varied"),
    [
        ("lower", ("is that an iphone?", "Ist das ein iPhone?")),
        ("title", ("Is That An iPhone?".replace("iPhone", "IPhone"), "Ist das ein iPhone?")),
        ("upper", ("IS THAT AN IPHONE?", "IST DAS EIN IPHONE?")),
        ("unpunctuated", ("Is that an iPhone", "Ist das ein iPhone")),
    ],
)
def test_each_variant_changes_what_it_says(variant: Variant, varied: tuple[str, str]) -> None:
    assert vary(variant, "Is that an iPhone?", "Ist das ein iPhone?") == varied


@pytest.mark.parametrize("variant", get_args(Variant))
def test_a_pair_without_another_form_has_none(variant: Variant) -> None:
    assert vary(variant, "42", "42") == NO_FORM


@pytest.mark.parametrize("variant", ["lower", "title", "upper"])
def test_a_source_without_case_has_no_form_however_its_target_is_written(variant: Variant) -> None:
    assert vary(variant, "猫在睡觉。", "The cat is sleeping.") == NO_FORM
    assert vary("upper", "A cat sleeps.", "猫在睡觉。") == ("A CAT SLEEPS.", "猫在睡觉。")


def test_stops_of_other_scripts_go_as_well() -> None:
    assert vary("unpunctuated", "Really?!", "真的吗？！") == ("Really", "真的吗")
    assert vary("unpunctuated", "Well… ", "嗯……") == ("Well", "嗯")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Hello!", "你好"),  # one side has none to take
        ("...", "。"),  # nothing would be left
        ('He said "Go!"', "他说“走！”"),  # the mark is not the last
        ("See (above.).", "见（上文。）。"),  # a bracket would be the end
    ],
)
def test_a_stop_goes_only_where_both_sides_end_in_one(source: str, target: str) -> None:
    assert vary("unpunctuated", source, target) == NO_FORM
