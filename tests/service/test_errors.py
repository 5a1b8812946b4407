import math

from service.errors import scalar


def test_a_value_that_may_be_a_text_is_named_by_its_length() -> None:
    assert scalar("zh-Hans") == "zh-Hans"
    assert scalar("a" * 41) == 41
    assert scalar("é") == 1
    assert scalar("\ud800") == 1
    assert scalar([1, 2]) is None
    assert scalar(True) is True
    assert math.isnan(float(scalar(math.nan) or 0))
