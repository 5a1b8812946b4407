from itertools import pairwise

import pytest

from model.text.languages.scripts import (
    is_of_language,
    is_one_word,
    script_of_language,
    scripts_of_text,
)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Grüße", "LATIN"),
        ("ＡＢＣ", "LATIN"),
        ("Привет", "CYRILLIC"),
        ("γεια", "GREEK"),
        ("שלום", "HEBREW"),
        ("مرحبا", "ARABIC"),
        ("नमस्ते", "DEVANAGARI"),
        ("สวัสดี", "THAI"),
        ("ሰላም", "ETHIOPIC"),
        ("你好", "CJK"),
        ("こんにちは", "KANA"),
        ("ｶﾀｶﾅ", "KANA"),
        ("안녕하세요", "HANGUL"),
    ],
)
def test_letters_are_of_one_script(text: str, script: str) -> None:
    assert set(scripts_of_text(text)) == {script}


@pytest.mark.parametrize("text", ["", " \n", "12:30", "🙂 → ½"])
def test_without_letters_there_is_no_script(text: str) -> None:
    assert not scripts_of_text(text)


def test_a_sign_that_is_a_word_weighs_more_than_a_letter() -> None:
    weights = scripts_of_text("iPhone 手机壳")
    assert weights["CJK"] > weights["LATIN"]
    weights = scripts_of_text("The character 好 means good")
    assert weights["CJK"] < weights["LATIN"]


@pytest.mark.parametrize(
    ("tag", "script"),
    [
        ("de", "LATIN"),
        ("ru", "CYRILLIC"),
        ("sr", "CYRILLIC"),
        ("sr-Latn", "LATIN"),
        ("uz-Cyrl-UZ", "CYRILLIC"),
        ("zh-Hant", "CJK"),
        ("ja", "KANA"),
        ("pt-BR", "LATIN"),
        ("km", "KHMER"),
        ("lzh", "CJK"),
        ("x-private", "LATIN"),
    ],
)
def test_a_language_has_the_script_of_its_tag_or_its_usual_one(tag: str, script: str) -> None:
    assert script_of_language(tag) == script


@pytest.mark.parametrize(
    ("letter", "tag", "expected"),
    [
        ("猫", "zh-Hans", True),
        ("猫", "ja", True),
        ("ね", "ja", True),
        ("ね", "zh", False),
        ("Ł", "zh", False),
        ("Ł", "de", True),
        ("ש", "zh", False),
        ("แ", "th", True),
    ],
)
def test_a_letter_is_of_the_languages_whose_script_has_it(
    letter: str, tag: str, *, expected: bool
) -> None:
    assert is_of_language(letter, tag) is expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the cat's", ["the", "cat", "s"]),
        ("Mu\u0308ller", ["Mu\u0308ller"]),
        ("उसकी कमी है", ["उसकी", "कमी", "है"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("\u2764\ufe0fyes", ["yes"]),
        ("猫cat猫", ["猫", "cat", "猫"]),
        ("か\u3099", ["か\u3099"]),
        ("แมวก็", ["แ", "ม", "ว", "ก็"]),
    ],
)
def test_words_are_divided_where_no_two_letters_are_of_one(text: str, words: list[str]) -> None:
    edges = [n for n in range(1, len(text)) if not is_one_word(text[n - 1], text[n])]
    parts = [text[start:end] for start, end in pairwise([0, *edges, len(text)])]
    assert [part for part in parts if any(map(str.isalpha, part))] == words
