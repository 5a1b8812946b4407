"""What a mark is, kind by kind, and where it ends."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model.text.marks.finding import find_marks
from model.text.marks.patterns import HINT, MARK, PATTERNS


def found(text: str) -> list[tuple[str, str]]:
    return [(text[mark.start : mark.end], mark.kind) for mark in find_marks(text)]


@pytest.mark.parametrize(
    ("line", "marks"),
    [
        ("| --verbose | Show more |", ["| ", "--verbose", " | ", " |"]),
        ("| :id | The number |", ["| ", ":id", " | ", " |"]),
        ("| -h | Help | -", ["| ", "-h", " | ", " | "]),
        ("|-v|Say more|", ["|", "-v", "|", "|"]),
        ("| -h, --help | Help |", ["| ", "-h", "--help", " | ", " |"]),
        ("|---|:-:| --: |", ["|---|:-:| --: |"]),
        ("| | a || b", ["| | ", " || "]),
    ],
)
def test_a_wall_takes_of_its_cells_only_what_is_no_word(line: str, marks: list[str]) -> None:
    assert [mark for mark, _ in found(line)] == marks


@pytest.mark.parametrize(
    "message",
    [
        "{count, plural, one {one message from {name}} other {# messages from {name}}}",
        "{g, select, a {{n, plural, one {her {x}} other {her # {x}}}} other {{n}}}",
    ],
)
def test_a_message_is_one_mark_with_the_messages_inside_of_it(message: str) -> None:
    assert found(f"You have {message} today.") == [(message, "placeholder")]


@pytest.mark.parametrize("mark", ["100%%", "12.5%%", "1,000.5 %%", "%%", "7\u202f%%"])
def test_an_escaped_percent_sign_is_one_mark_with_its_number(mark: str) -> None:
    for text in ("It is done ({}).", "{} of all", "完成{}了", "(%s: {})"):
        assert (mark, "placeholder") in found(text.format(mark)), text


@pytest.mark.parametrize("text", ["v1.2.3.4%%", "x7%%", "%d%%", "%(n)d%%"])
def test_a_percent_sign_behind_a_name_is_a_mark_by_itself(text: str) -> None:
    assert found(text)[-1] == ("%%", "placeholder")


@pytest.mark.parametrize(
    "path", ["~/.ssh/config", "/.well-known/x", "../.env", "./.git/config", "a/.b/c.txt", "a/.env"]
)
def test_what_is_hidden_is_of_its_path(path: str) -> None:
    for text in (path, f"Open {path} now.", f"It is {path}."):
        assert (path, "path") in found(text), text


def test_a_slash_and_a_stop_do_not_make_a_path() -> None:
    assert found("Yes and/or. No") == found("wait..what? a/.") == []


@pytest.mark.parametrize("arrow", "⬅⬆⬇⤴⤵Ⓜ")
def test_an_arrow_that_is_printed_as_a_picture_is_an_emoji(arrow: str) -> None:
    assert found(f"Go {arrow}\ufe0f now") == [(f"{arrow}\ufe0f", "emoji")]
    assert found(f"Go {arrow} now") == []


def test_a_run_of_backticks_is_a_mark_with_or_without_code() -> None:
    assert found("See ```a b``` or type ``` here") == [("```a b```", "code"), ("```", "code")]
    assert found("````a````") == [("````", "code"), ("````", "code")]


@pytest.mark.parametrize("mark", ["00-1A-2B-3C-4D-5E", "report(2).pdf"])
def test_a_mark_is_found_where_nothing_else_hints_at_one(mark: str) -> None:
    assert [one for one, _ in found(f"Look at {mark} now")] == [mark]


@pytest.mark.parametrize("index", range(len(PATTERNS)))
@given(data=st.data())
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
def test_whatever_is_a_mark_has_a_hint(index: int, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(re.compile(PATTERNS[index][1])))
    text = text.replace("](", "] (")  # the end of a link is none without its beginning
    if MARK.search(text) is not None:
        assert HINT.search(text) is not None, text


@pytest.mark.parametrize(
    "part",
    [
        *(
            "|:- ",
            "| --a",
            "{n, plural, ",
            "{n,plural,a {",
            "/.",
            "a/.b",
            "⬅\ufe0f",
            "00-",
            "a(1).",
        ),
        *("```a", "```\n", "> ```\n", "1. ```a\n", "- - - ", "1. 1. "),
    ],
)
def test_a_long_line_of_anything_is_read_once(part: str) -> None:
    # Ten thousand repetitions end within the test's time only if the work grows with the text.
    text = part * 10_000
    assert all(mark.end <= len(text) for mark in find_marks(text))


def test_messages_that_do_not_end_are_read_once() -> None:
    text = "{n, plural, " * 3 + "{n, plural, {a}}" * 10_000
    assert len(find_marks(text)) == 10_000


def test_a_wide_cell_is_read_once() -> None:
    assert [mark for mark, _ in found(f"| a{' ' * 40_000}b |")] == ["| ", " |"]
