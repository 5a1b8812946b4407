"""What stands between pieces of a translation: spaces and signs by the scripts there."""

from collections.abc import Mapping

import pytest

from model.text.languages.tags import LanguagePair
from model.text.marks.finding import Mark, find_marks
from model.text.marks.seams import replaced
from support.work import num_lines

ZH_EN = LanguagePair(source="zh", target="en")
ZH_JA = LanguagePair(source="zh", target="ja")
KO_EN = LanguagePair(source="ko", target="en")
INTO_LATIN = {
    "用户": "user",
    "登录": "log in",
    "后台": "admin panel",
    "데이터": "data",
    "서버": "server",
}


def copy_of(text: str, targets: Mapping[str, str], pair: LanguagePair | None) -> str:
    terms = [
        Mark(start=place, end=place + len(source), kind="term", replacement=target)
        for source, target in targets.items()
        for place in range(len(text))
        if text.startswith(source, place)
    ]
    return replaced(text, sorted([*find_marks(text), *terms], key=lambda mark: mark.start), pair)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("用户登录后台。", "user log in admin panel."),
        ("用户、登录，后台！", "user, log in, admin panel!"),
        ("用户（登录）：后台", "user (log in): admin panel"),
        ("用户/后台", "user/admin panel"),
        ("“用户”", "“user”"),
        ("3用户，5.5后台", "3 user, 5.5 admin panel"),
        ("{a}{b}用户{n}登录", "{a}{b} user {n} log in"),
        ("<b>用户</b>登录", "<b>user</b> log in"),
        ("用户<b>登录</b><i>后台</i>。", "user <b>log in</b> <i>admin panel</i>."),
        ('用户<img alt="。">', 'user<img alt="。">'),
        ("{a}，{b}。", "{a}，{b}。"),
    ],
)
def test_terms_of_a_script_without_spaces_get_the_spaces_and_signs_of_the_target(
    text: str, expected: str
) -> None:
    assert copy_of(text, INTO_LATIN, ZH_EN) == expected


@pytest.mark.parametrize(
    ("text", "pair", "expected"),
    [
        ("用户登录。", None, "user log in。"),
        ("用户、登录。", ZH_JA, "user、log in。"),
        ("데이터서버", KO_EN, "data server"),
        ("데이터:서버", KO_EN, "data: server"),
    ],
)
def test_signs_are_those_of_the_target_and_spaces_come_by_the_scripts(
    text: str, pair: LanguagePair | None, expected: str
) -> None:
    assert copy_of(text, INTO_LATIN, pair) == expected


def test_twice_the_terms_are_about_twice_the_work() -> None:
    def work(num_terms: int) -> int:
        text = "用户，登录" * num_terms
        return num_lines(lambda: replaced(text, marks(text), ZH_EN))

    def marks(text: str) -> list[Mark]:
        return [
            Mark(start=n, end=n + 2, kind="term", replacement="user")
            for n in range(0, len(text), 5)
        ]

    assert work(800) < 3 * work(400)
