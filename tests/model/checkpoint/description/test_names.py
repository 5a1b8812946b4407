import pytest

from model.checkpoint.description.names import MAX_NAME_CHARACTERS, name_problem, plain_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (" a\tb \n c ", "a b c"),
        ("a\u200b\u202e\x00b", "ab"),
        ("a \u200b b", "a b"),
        ("\u2028\ud800", ""),
        ("模型 v2", "模型 v2"),
        ("x" * 2_000, "x" * MAX_NAME_CHARACTERS),
    ],
)
def test_a_strangers_text_becomes_a_name_without_a_problem(text: str, name: str) -> None:
    assert plain_name(text) == name
    assert name_problem(name) is None
