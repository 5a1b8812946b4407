import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.text.segmenter import Span, cut_spans, sentence_spans

# Characters that the rules know, so that generated texts meet the rules often.
AWKWARD = st.text(
    st.sampled_from(
        "aZ. !?…。！？；，,:;\"'“”’«»()（）[]《》中あ1A-é😀"
        "\n\r\t\u00a0\u3000\u2028\ufeff\u0301\u200d"
    )
)
ANY_TEXT = st.one_of(AWKWARD, st.text())


def sentences(text: str, language: str = "en") -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text, language)]


def assert_only_blank_between(text: str, spans: list[Span]) -> None:
    def is_blank(gap: str) -> bool:
        return all(character.isspace() or character in "\ufeff\u200b" for character in gap)

    done = 0
    for start, end in spans:
        assert done <= start < end
        assert is_blank(text[done:start])
        assert not text[start].isspace()
        assert not text[end - 1].isspace()
        done = end
    assert is_blank(text[done:])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith met Mrs. Jones. They left.", ["Dr. Smith met Mrs. Jones.", "They left."]),
        ("J. R. R. Tolkien wrote. He won.", ["J. R. R. Tolkien wrote.", "He won."]),
        (
            "J. A. Smith met A. B. Jones. A man came.",
            ["J. A. Smith met A. B. Jones.", "A man came."],
        ),
        ("So did I. Then we left.", ["So did I.", "Then we left."]),
        ("It costs $3.50. Cheap!", ["It costs $3.50.", "Cheap!"]),
        (
            "See example.org, v2.0.1 or a.b.c now. Bye.",
            ["See example.org, v2.0.1 or a.b.c now.", "Bye."],
        ),
        ("Fruit, e.g. apples, i.e. Food. Good.", ["Fruit, e.g. apples, i.e. Food.", "Good."]),
        ("The U.S. Army is in the U.S. The end.", ["The U.S. Army is in the U.S.", "The end."]),
        (
            "Read No. 5 on Jan. 3. He said no. Then left.",
            ["Read No. 5 on Jan. 3.", "He said no.", "Then left."],
        ),
        (
            "Wait... What? Well... maybe. Hm… Yes.",
            ["Wait...", "What?", "Well... maybe.", "Hm…", "Yes."],
        ),
        ('"Stop!" he said. "Why?" Nobody knew.', ['"Stop!" he said.', '"Why?"', "Nobody knew."]),
        ("(He left.) Then it rained.", ["(He left.)", "Then it rained."]),
        ("He met Tom (who?) Smith. Yes.", ["He met Tom (who?) Smith.", "Yes."]),
        ("1. Introduction", ["1. Introduction"]),
        ("It was 1990. Then came 1991.", ["It was 1990.", "Then came 1991."]),
        ("Really?! No way!!! Yes.", ["Really?!", "No way!!!", "Yes."]),
        ("iPhone sales fell. 300 people left.", ["iPhone sales fell.", "300 people left."]),
        ("Great! 😀 Next one.", ["Great!", "😀 Next one."]),
        ("Roe v. Wade. Well . . . Nothing.", ["Roe v. Wade.", "Well . . .", "Nothing."]),
        ("Lt.-Col. Brown and Prof. White.", ["Lt.-Col. Brown and Prof. White."]),
    ],
)
def test_english_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("你好。我是小明！你呢？", ["你好。", "我是小明！", "你呢？"]),
        ("他说：“你好。”然后走了。", ["他说：“你好。”", "然后走了。"]),
        ("他走了。“你好！”她说。", ["他走了。", "“你好！”", "她说。"]),
        ("“好！”，他说。", ["“好！”，他说。"]),
        ("这件事（对吗？）很难。（见图。）好。", ["这件事（对吗？）很难。", "（见图。）", "好。"]),
        ("我……我不知道。", ["我……我不知道。"]),
        ("“好 。 ” 他走 … … 下雨 。 ”", ["“好 。 ”", "他走 … …", "下雨 。 ”"]),
        ("一；二；三。", ["一；二；三。"]),
        ("我读《你好！》这本书。", ["我读《你好！》这本书。"]),
        ("中文用英文句号.下一句话.", ["中文用英文句号.", "下一句话."]),
        ("π是３．１４。好．下一", ["π是３．１４。", "好．", "下一"]),
        ("版本3.14很好。访问example.com吧。", ["版本3.14很好。", "访问example.com吧。"]),
    ],
)
def test_chinese_sentences_need_no_space_between_them(text: str, expected: list[str]) -> None:
    assert sentences(text, "zh-Hans") == expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            "de",
            "Am 3. Oktober kam er z. B. an. Das war 1990. Gut.",
            ["Am 3. Oktober kam er z. B. an.", "Das war 1990.", "Gut."],
        ),
        ("de", "„Ja.“ Er ging. »Nein.« Sie kam.", ["„Ja.“", "Er ging.", "»Nein.«", "Sie kam."]),
        (
            "fr",
            "M. Dupont est là. Ça va ? « Oui. » Il part.",
            ["M. Dupont est là.", "Ça va ?", "« Oui. »", "Il part."],
        ),
        ("fr", "« Quoi ? », dit-il. « Bien ? ».", ["« Quoi ? », dit-il.", "« Bien ? »."]),
        (
            "es",
            "¿Qué tal? ¡Hola! El Sr. García vive en EE.UU. desde 1990.",
            ["¿Qué tal?", "¡Hola!", "El Sr. García vive en EE.UU. desde 1990."],
        ),
        ("ja", "これは本です。はい！", ["これは本です。", "はい！"]),
        ("hi", "नमस्ते। आप कैसे हैं?", ["नमस्ते।", "आप कैसे हैं?"]),
        ("ar", "كيف حالك؟ بخير.", ["كيف حالك؟", "بخير."]),
        ("ko", "안녕하세요. 반갑습니다.", ["안녕하세요.", "반갑습니다."]),
        ("ru", "Это т. е. дом на ул. Мира. Он ушёл.", ["Это т. е. дом на ул. Мира.", "Он ушёл."]),
    ],
)
def test_every_language_has_its_own_marks(language: str, text: str, expected: list[str]) -> None:
    assert sentences(text, language) == expected


def test_line_breaks_and_tabs_always_end_a_sentence() -> None:
    text = "name\tvalue\nfirst line\r\nno stop\u2028next\x85last"
    assert sentences(text) == ["name", "value", "first line", "no stop", "next", "last"]


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\u3000\t\r\n", "\ufeff", "\u200b \u200b"])
def test_a_blank_text_has_no_sentences(text: str) -> None:
    assert sentences(text) == []


@given(ANY_TEXT, st.sampled_from(["en", "zh-Hans", "de", "fr", "xx"]))
@settings(max_examples=400, deadline=None)
def test_nothing_but_blank_stands_outside_the_sentences(text: str, language: str) -> None:
    assert_only_blank_between(text, list(sentence_spans(text, language)))


@given(ANY_TEXT, st.integers(1, 12))
@settings(max_examples=400, deadline=None)
def test_pieces_of_a_cut_fit_and_lose_nothing(text: str, max_tokens: int) -> None:
    spans = cut_spans(text, len, max_tokens)
    assert_only_blank_between(text, spans)
    assert all(end - start <= max_tokens for start, end in spans)


def test_a_cut_is_made_at_clauses_then_spaces_then_characters() -> None:
    def pieces(text: str, max_tokens: int) -> list[str]:
        return [text[start:end] for start, end in cut_spans(text, len, max_tokens)]

    assert pieces("one two three, four five six seven", 25) == [
        "one two three,",
        "four five six seven",
    ]
    assert pieces("我们今天去公园，明天再去学校上课", 12) == [
        "我们今天去公园，",
        "明天再去学校上课",
    ]
    assert pieces("aaaa bbbb cccc dddd", 12) == ["aaaa bbbb", "cccc dddd"]
    assert pieces("abcdefghij", 6) == ["abcde", "fghij"]
    assert pieces("e\u0301" * 4, 5) == ["e\u0301" * 2, "e\u0301" * 2]


def test_a_character_that_is_too_long_by_itself_stays_whole() -> None:
    assert cut_spans("ab", lambda piece: 100 * len(piece), 10) == [(0, 1), (1, 2)]


def test_a_cut_asks_for_few_lengths() -> None:
    num_characters = 0

    def count(piece: str) -> int:
        nonlocal num_characters
        num_characters += len(piece)
        return len(piece)

    text = "word " * 20_000
    cut_spans(text, count, 100)
    assert num_characters < 5 * len(text)


ADVERSARIAL: dict[str, Callable[[int], str]] = {
    "stops": lambda n: "." * n,
    "spaced stops": lambda n: ". " * (n // 2),
    "initials": lambda n: "A. " * (n // 3),
    "acronyms": lambda n: "U.S. " * (n // 5),
    "dotted": lambda n: "a." * (n // 2),
    "quotes": lambda n: '"' * n,
    "stopped quotes": lambda n: '?"' * (n // 2),
    "spaces": lambda n: ". " + " " * n + ".",
    "initials after spaces": lambda n: "x. " + " " * (n // 2) + "A. " * (n // 6),
    "initials after dashes": lambda n: "-" * (n // 2) + "A. " * (n // 6),
    "open brackets": lambda n: "A. " + "(" * n,
    "brackets that close": lambda n: "（" + "a？）" * (n // 3),
    "guillemets": lambda n: ". »" * (n // 3),
    "one letter": lambda n: "a" * n,
    "chinese": lambda n: "好。" * (n // 2),
    "line breaks": lambda n: "\r\n" * (n // 2),
    "combining marks": lambda n: "e" + "\u0301" * n,
    "joiners": lambda n: "👨\u200d" * (n // 2),
    "commas": lambda n: "," * n,
    "nul": lambda n: "\0" * n,
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_no_input_makes_it_slow(name: str) -> None:
    def seconds(size: int) -> float:
        text = ADVERSARIAL[name](size)
        begin = time.process_time()
        for language in ("en", "de"):
            list(sentence_spans(text, language))
        cut_spans(text, len, 100)
        return time.process_time() - begin

    # Quadratic time would take minutes for this; linear takes about half a second.
    assert seconds(200_000) < 10.0
