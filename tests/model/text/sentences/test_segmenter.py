import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.text.languages.tags import primary_language
from model.text.sentences.abbreviations import abbreviation_rules
from model.text.sentences.segmenter import Span, cut_spans, sentence_spans

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
        ("访问example.中国吧。", ["访问example.中国吧。"]),
        ("访问中国.com吧。", ["访问中国.com吧。"]),
        ("我...我不知道!好吧?好!", ["我...我不知道!", "好吧?", "好!"]),
        ("ＡＢＣ.ＤＥＦ!", ["ＡＢＣ.", "ＤＥＦ!"]),
    ],
)
def test_chinese_sentences_need_no_space_between_them(text: str, expected: list[str]) -> None:
    assert sentences(text, "zh-Hans") == expected


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("de", "Am 31. Oktober kam er. Gut.", ["Am 31. Oktober kam er.", "Gut."]),
        ("de", "Am 3. Oktober kam er. Gut.", ["Am 3. Oktober kam er.", "Gut."]),
        ("de", "Es waren 100. Gut.", ["Es waren 100.", "Gut."]),
        ("cs", "Dne 3. Brezna prisel. Dobre.", ["Dne 3. Brezna prisel.", "Dobre."]),
        ("en", "It was 31. Good.", ["It was 31.", "Good."]),
        ("en", "It was 3. Good.", ["It was 3.", "Good."]),
        ("en", "7. One. 12. Two.", ["7. One.", "12. Two."]),
        ("en", "100. One. Two.", ["100. One.", "Two."]),
        ("en", "1990. One. Two.", ["1990.", "One.", "Two."]),
        ("de", "Im Jahr 100. Gut.", ["Im Jahr 100.", "Gut."]),
    ],
)
def test_digits_before_a_full_stop_are_an_ordinal_a_number_of_a_line_or_an_end(
    language: str, text: str, expected: list[str]
) -> None:
    assert sentences(text, language) == expected


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
        ("ko", "안녕하세요.반갑습니다.", ["안녕하세요.반갑습니다."]),
        ("ja", "好．３つ。", ["好．３つ。"]),
        ("ja", "好．三つ。", ["好．", "三つ。"]),
        ("ru", "Это т. е. дом на ул. Мира. Он ушёл.", ["Это т. е. дом на ул. Мира.", "Он ушёл."]),
    ],
)
def test_every_language_has_its_own_marks(language: str, text: str, expected: list[str]) -> None:
    assert sentences(text, language) == expected


@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "pt", "it", "nl", "ru", "zh-Hans"])
def test_every_word_of_a_languages_lists_is_known_however_long_it_is(language: str) -> None:
    rules = abbreviation_rules(primary_language(language))
    for word in rules.closed:
        for written in (word, word.upper(), word.capitalize()):
            assert len(sentences(f"Xxx {written}. Yyyy zz.", language)) == 1, written
    for word in rules.before_number - rules.closed:
        assert len(sentences(f"Xxx {word}. 5 zz.", language)) == 1, word
    for word in rules.open - rules.closed:
        assert len(sentences(f"Xxx {word}. Yyyyyy zz.", language)) == 1, word
        for starter in rules.starters:
            text = f"Xxx {word}. {starter.capitalize()} zz."
            assert len(sentences(text, language)) == 2, text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # An item of a list is a capital letter; what follows it may begin like a sentence.
        ("A. The first. B. The second.", ["A. The first.", "B. The second."]),
        ("a. The first. Yes.", ["a.", "The first.", "Yes."]),
        ("So did I. The end.", ["So did I.", "The end."]),
        ("It is x. Good.", ["It is x.", "Good."]),
        ("At IT. Good.", ["At IT.", "Good."]),
        # Parts of an acronym have a letter or two.
        ("In the E.U. Army", ["In the E.U. Army"]),
        ("In the EE.UU. Army", ["In the EE.UU. Army"]),
        ("On page.abc. Army", ["On page.abc.", "Army"]),
        ("In abc.def. Army", ["In abc.def.", "Army"]),
        ("In a.5. Army", ["In a.5.", "Army"]),
        # An abbreviation only before digits; and only a full stop makes one.
        ("Read no. 5. He said no. Then.", ["Read no. 5.", "He said no.", "Then."]),
        ("He saw Mr! Then.", ["He saw Mr!", "Then."]),
        ('He met "Mr." Then.', ['He met "Mr."', "Then."]),
        ("He left etc. Brown came.", ["He left etc. Brown came."]),
        ("He left etc. The end.", ["He left etc.", "The end."]),
        ("He met J.-P. Sartre. Yes.", ["He met J.-P. Sartre.", "Yes."]),
        ("-A. The first. Yes.", ["-A. The first.", "Yes."]),
        ("He met J. I. Smith. Yes.", ["He met J. I. Smith.", "Yes."]),
        # A lower-case letter goes on, with or without a quote before it.
        ('"Why?" "he" asked.', ['"Why?" "he" asked.']),
        ("Why? he asked.", ["Why? he asked."]),
    ],
)
def test_what_stands_around_a_stop_decides(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_a_stop_in_a_bracket_of_up_to_two_hundred_characters_is_the_brackets() -> None:
    near, far = (f"他（{'字' * number}？）来。" for number in (199, 200))
    assert sentences(near, "zh") == [near]
    assert sentences(far, "zh") == [far[:-2], "来。"]
    assert sentences(f"He (who{'o' * 100}?) Came.") == [f"He (who{'o' * 100}?) Came."]


def test_a_bracket_of_the_sentence_before_holds_no_stop_of_this_one() -> None:
    assert sentences("（一。二？）三。", "zh") == ["（一。", "二？）", "三。"]


def test_line_breaks_and_tabs_always_end_a_sentence() -> None:
    text = "name\tvalue\nfirst line\r\nno stop\u2028next\x85last"
    assert sentences(text) == ["name", "value", "first line", "no stop", "next", "last"]


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\u3000\t\r\n", "\ufeff", "\u200b \u200b"])
def test_a_blank_text_has_no_sentences(text: str) -> None:
    assert sentences(text) == []


def test_invisible_characters_at_the_ends_are_no_part_of_a_sentence() -> None:
    for blank in ("\ufeff", "\u200b", "\u200b \ufeff"):
        assert sentences(f"{blank}The cat.{blank}") == ["The cat."]
        assert sentences(f"{blank}The cat.{blank}\n{blank}A dog{blank}") == ["The cat.", "A dog"]
    assert sentences("The\u200bcat") == ["The\u200bcat"]


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


def pieces_of(text: str, max_tokens: int) -> list[str]:
    return [text[start:end] for start, end in cut_spans(text, len, max_tokens)]


def test_a_cut_is_moved_behind_a_combining_mark_as_far_as_it_may_be_moved() -> None:
    assert pieces_of("e\u0301" * 3, 5) == ["e\u0301" * 2, "e\u0301"]
    assert pieces_of("abe\u0301\u0302cdef", 8) == ["abe\u0301\u0302", "cdef"]
    # With nothing but marks in reach it is made where it would have been.
    assert pieces_of("ab" + "\u0301" * 7, 8) == ["ab" + "\u0301" * 2, "\u0301" * 5]


CLUSTERS = ("a", "好", "e\u0301", "a\u0301\u0302", "👨\u200d👩", "ก็", "ด้", "नि")


@given(
    st.lists(st.sampled_from(CLUSTERS), min_size=5, max_size=80).map("".join), st.integers(12, 40)
)
@settings(max_examples=300, deadline=None)
def test_no_cut_takes_a_mark_from_its_letter_or_a_joiner_from_its_emoji(
    text: str, max_tokens: int
) -> None:
    for piece in pieces_of(text, max_tokens):
        assert not unicodedata.category(piece[0]).startswith("M")
        assert piece[0] != "\u200d"
        assert piece[-1] != "\u200d"


def test_a_cut_is_made_at_a_clause_that_is_near_even_where_a_space_is_nearer() -> None:
    head, tail = "abcdefghijk, mno ", "qrstuvwxyzabcdefg"
    assert pieces_of(head + tail, 25) == ["abcdefghijk,", f"mno {tail}"]
    assert pieces_of(head.replace(",", "l") + tail, 25) == ["abcdefghijkl mno", tail]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("abcdefghijk, nop, stuvwxyzabcdefgh", "abcdefghijk, nop,"),
        ("abcdefghijklmn, qrst, wxyzabcdefgh", "abcdefghijklmn,"),
        ("abcdefghijk mnop rstuvwxyzabcdefgh", "abcdefghijk mnop"),
        ("abcdefghijklmn pqrst vwxyzabcdefgh", "abcdefghijklmn"),
    ],
)
def test_of_two_places_for_a_cut_the_nearer_is_taken(text: str, first: str) -> None:
    assert len(text) == 34  # so that the middle is 17, and what is near goes from 12 to 22
    assert pieces_of(text, 25)[0] == first


def test_a_place_for_a_cut_is_taken_in_reach_and_not_one_character_beyond() -> None:
    for place, is_near in ((11, False), (12, True), (22, True), (23, False)):
        for end in (", ", " "):
            text = ("a" * (place - len(end)) + end).ljust(34, "x")
            first = text[:place].strip() if is_near else text[:17]
            assert pieces_of(text, 25)[0] == first


def test_parts_leave_a_tenth_of_slack() -> None:
    counts = {size: len(pieces_of("a" * size, 50)) for size in (50, 51, 89, 90, 134, 135)}
    assert counts == {50: 1, 51: 2, 89: 2, 90: 3, 134: 3, 135: 4}


def test_a_span_of_just_the_limit_is_not_cut() -> None:
    assert pieces_of("abcdef", 6) == ["abcdef"]
    assert pieces_of("abcdef", 5) == ["abc", "def"]
    assert pieces_of("a", 1) == ["a"]
    assert pieces_of("", 1) == []


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
