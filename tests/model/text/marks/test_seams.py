"""What stands between pieces of a translation: spaces, signs and stops by the scripts there."""

from collections.abc import Mapping

import pytest

from model.text.languages.tags import LanguagePair
from model.text.marks.finding import Mark, find_marks
from model.text.marks.seams import Piece, rejoined, replaced
from support.work import num_lines

ZH_EN = LanguagePair(source="zh", target="en")
ZH_JA = LanguagePair(source="zh", target="ja")
EN_ZH = LanguagePair(source="en", target="zh")
EN_JA = LanguagePair(source="en", target="ja")
EN_DE = LanguagePair(source="en", target="de")
KO_EN = LanguagePair(source="ko", target="en")
INTO_LATIN = {
    "用户": "user",
    "登录": "log in",
    "后台": "admin panel",
    "苹果": "Apple Inc.",
    "雅虎": "Yahoo!",
    "데이터": "data",
    "서버": "server",
}
INTO_CHINESE = {"User": "用户", "settings": "设置", "network": "网络", "cat": "API"}


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("User settings", "用户设置"),
        ("User\u00a0settings", "用户设置"),
        ("User settings: network.", "用户设置：网络。"),
        ("User, network!", "用户，网络！"),
        ("<b>User</b> <i>settings</i>", "<b>用户</b><i>设置</i>"),
        ("User {name} settings", "用户 {name} 设置"),
        ("cat cat, User", "API API, 用户"),
        ("User: 3.5", "用户：3.5"),
        ("User...", "用户..."),
        ("User - settings", "用户 - 设置"),
    ],
)
def test_between_terms_in_chinese_there_are_no_spaces_and_chinese_signs(
    text: str, expected: str
) -> None:
    assert copy_of(text, INTO_CHINESE, EN_ZH) == expected


def test_a_target_with_spaces_keeps_them_and_a_comma_is_the_languages_own() -> None:
    assert copy_of("User settings, network", INTO_CHINESE, EN_DE) == "用户 设置, 网络"
    assert copy_of("User settings, network", INTO_CHINESE, EN_JA) == "用户设置、网络"


@pytest.mark.parametrize(
    ("words", "mark", "rest", "expected"),
    [
        ("打开 ", "仪表板", " 以查看", "打开仪表板以查看"),
        ("打开 ", "API", " 以查看", "打开 API 以查看"),
        ("打开 ", "{名}", " 以查看", "打开 {名} 以查看"),
        ("用 Foo ", "仪表板", " Bar 吧", "用 Foo 仪表板 Bar 吧"),
        ("打开， ", "仪表板", " 。", "打开，仪表板。"),
        ("打开。 ", "仪表板", " ", "打开。 仪表板 "),
        ("打 开 ", "かな", " へ", "打 开かなへ"),
        (" ", "仪表板", "", " 仪表板"),
    ],
)
def test_a_network_puts_no_space_beside_a_mark_between_letters_that_have_none(
    words: str, mark: str, rest: str, expected: str
) -> None:
    pieces = [Piece(text=words), Piece(text=mark, is_word=True), Piece(text=rest)]
    assert rejoined(pieces, "zh-Hans") == expected
    assert rejoined(pieces, "de") == words + mark + rest


def test_a_tag_between_a_mark_and_its_neighbour_hides_no_space() -> None:
    pieces = [
        Piece(text="打开 "),
        Piece(text="<b>", is_loose=True),
        Piece(text="仪表板", is_word=True),
        Piece(text="</b>", is_loose=True),
        Piece(text=" "),
        Piece(text="网络", is_word=True),
    ]
    assert rejoined(pieces, "zh") == "打开<b>仪表板</b>网络"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("苹果。", "Apple Inc."),
        ("苹果.", "Apple Inc."),
        ("“苹果。”", "“Apple Inc.”"),
        ("苹果，用户。", "Apple Inc., user."),
        ("苹果？", "Apple Inc.?"),
        ("雅虎！", "Yahoo!"),
        ("苹果...", "Apple Inc...."),
    ],
)
def test_of_a_terms_stop_and_the_sentences_one_stands(text: str, expected: str) -> None:
    assert copy_of(text, INTO_LATIN, ZH_EN) == expected


@pytest.mark.parametrize(
    ("mark", "is_term", "rest", "expected"),
    [
        ("Apple Inc.", True, ".", "bei Apple Inc."),
        ("Apple Inc.", True, ". Ja", "bei Apple Inc. Ja"),
        ("Apple Inc.", True, ".”", "bei Apple Inc.”"),
        ("Apple Inc.", True, "...", "bei Apple Inc...."),
        ("Apple Inc.", True, ".5", "bei Apple Inc..5"),
        ("and so on...", True, ".", "bei and so on...."),
        ("Apple Inc.", True, "。", "bei Apple Inc.。"),
        ("Yahoo!", True, "?", "bei Yahoo!?"),
        ("etc.", False, ".", "bei etc.."),
    ],
)
def test_a_stop_behind_a_term_that_ends_in_one_is_left_out(
    mark: str, is_term: bool, rest: str, expected: str
) -> None:
    pieces = [
        Piece(text="bei "),
        Piece(text=mark, is_word=True, is_term=is_term),
        Piece(text=rest),
    ]
    assert rejoined(pieces, "de") == expected


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
