"""Beginnings of lines: what is always one, and what is one in company."""

import pytest

from model.text.marks.finding import find_marks


def found(text: str) -> list[tuple[str, str]]:
    return [(text[mark.start : mark.end], mark.kind) for mark in find_marks(text)]


def test_lines_of_a_numbered_list_begin_with_leads_and_one_date_does_not() -> None:
    assert found("1. Open it.\n 2) Close it.") == [("1. ", "lead"), (" 2) ", "lead")]
    assert found("1、打开\n2、关闭") == [("1、", "lead"), ("2、", "lead")]
    assert found("3. Oktober ist Feiertag.\nEr kam 1990.") == []


@pytest.mark.parametrize(
    ("text", "leads"),
    [
        ("a) open\nb) close", ["a) ", "b) "]),
        ("(a) open\n(b) close", ["(a) ", "(b) "]),
        ("i. Introduction\nii. Methods\niv. End", ["i. ", "ii. ", "iv. "]),
        ("I. Introduction\nII. Methods", ["I. ", "II. "]),
        ("(1) open\n(12) close", ["(1) ", "(12) "]),
        ("A) yes\nB) no", ["A) ", "B) "]),
        ("A. First\nB. Second\n\nA. First", ["A. ", "B. "]),
        ("A. First\nI. one\nII. two\nB. Second", ["A. ", "I. ", "II. ", "B. "]),
        ("J. Smith\nK. Doe", []),
        ("a. Open", []),
        ("i. Open", []),
        ("A. Smith", []),
        ("I see.\nA cat.\nOK. Fine.", []),
    ],
)
def test_letters_and_roman_numbers_are_leads_of_lists(text: str, leads: list[str]) -> None:
    assert [mark for mark, kind in found(text) if kind == "lead"] == leads


@pytest.mark.parametrize(
    ("text", "lead"),
    [
        ("a) open", "a) "),
        ("(a) open", "(a) "),
        ("ii) open", "ii) "),
        ("1) open", "1) "),
        ("1.) öffnen", "1.) "),
        ("1）安装", "1）"),
        ("1)安装", "1)"),
        ("1、安装", "1、"),
        ("1.安装", "1."),
        ("１．安装", "１．"),
        ("一、打开", "一、"),
        ("　　十一、打开", "　　十一、"),
        ("（一）打开", "（一）"),
        ("(1)打开", "(1)"),
        ("（1）、打开", "（1）、"),
        ("①安装", "①"),
        ("② open", "② "),
        ("·安装", "·"),
        ("•Install", "•"),
        ("→ 安装", "→ "),
        ("●安装", "●"),
        ("□ 同意", "□ "),
        ("[ ] Buy milk", "[ ] "),
        ("[x] Done", "[x] "),
        ("- [x] a) Done", "- [x] a) "),
        ("### 一、概述", "### 一、"),
    ],
)
def test_what_can_be_nothing_else_is_a_lead_in_one_line_alone(text: str, lead: str) -> None:
    assert found(text) == [(lead, "lead")]


@pytest.mark.parametrize(
    "text",
    [
        "一、二楼的房间",
        "3、4月",
        "1.5倍",
        "1．5倍",
        "3.5万人",
        "①和②相加",
        "① and ② are added",
        "①、②和③",
        "（1）和（2）",
        "(a) and (b) differ",
        "1) to 5) are done",
        "●●公司",
        "○三年",
        "(s)he opens it",
        "(555) 123-4567",
        "see a) or (b)",
        "第一章",
        "1. Open",
        "二、三线城市",
    ],
)
def test_what_a_sentence_may_begin_with_is_no_lead(text: str) -> None:
    assert not [mark for mark, kind in found(text) if kind == "lead"]
