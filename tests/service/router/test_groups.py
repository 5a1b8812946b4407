"""Groups as operators name them."""

import pytest

from model.errors import ConfigError
from service.router.groups import Group, group_lost, group_unavailable, parse_groups


def test_a_group_is_a_name_and_an_address() -> None:
    assert parse_groups(["europe=http://words-europe:8000", "large=http://[::1]/"]) == (
        Group(name="europe", host="words-europe", port=8000),
        Group(name="large", host="::1", port=80),
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "there is no group"),
        (["europe"], "'' ; it must be"),
        (["=http://a:1"], "is no group"),
        (["Eu=http://a:1"], "is no group"),
        (["a=https://a:1"], "must be http://HOST:PORT"),
        (["a=http://a:1/path"], "without a path"),
        (["a=http://a:99999"], "must be http://HOST:PORT"),
        (["a=http://me:secret@a:1"], "must be http://HOST:PORT"),
        (["a=http://a:1", "a=http://b:1"], "group a is given twice"),
        ([f"g{number}=http://a:1" for number in range(65)], "there are 65 groups; the limit is 64"),
    ],
)
def test_a_wrong_group_is_refused_in_one_line(given: list[str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_groups(given)
    assert words.replace(" ;", ";") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_refusals_name_the_groups() -> None:
    problem = group_unavailable(["a", "b"], "connection refused").problem
    assert (problem.status, problem.code) == (503, "group_unavailable")
    assert problem.message == "groups a, b cannot be reached: connection refused"
    assert problem.retry_after_seconds is not None
    lost = group_lost("a", "it closed the connection").problem
    assert (lost.status, lost.value) == (502, "a")
