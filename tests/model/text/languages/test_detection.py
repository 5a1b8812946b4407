"""The language of a text: among the candidates alone, with how sure it is."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from model.text.languages.detection import (
    MAX_CHARACTERS,
    Detection,
    TextDetector,
    forget_statistics,
    statistics_of,
)

SENTENCES = {
    "en": [
        "Where is the nearest train station?",
        "I would like a cup of tea, please.",
        "Good morning",
    ],
    "de": ["Wo ist der nächste Bahnhof?", "Ich hätte gern eine Tasse Tee.", "Guten Tag"],
    "fr": ["Où est la gare la plus proche ?", "Je voudrais une tasse de thé.", "Bonsoir madame"],
    "zh-Hans": ["最近的火车站在哪里？", "请给我一杯茶。", "谢谢"],
}


@pytest.fixture(scope="module")
def detector() -> TextDetector:
    return TextDetector(SENTENCES)


@pytest.mark.parametrize(
    ("tag", "text"), [(tag, text) for tag, texts in SENTENCES.items() for text in texts]
)
def test_plain_sentences_are_recognised(detector: TextDetector, tag: str, text: str) -> None:
    found = detector.detect(text)
    assert found.tag == tag
    assert 50 <= found.confidence <= 100


def test_what_is_no_candidate_is_never_chosen() -> None:
    detector = TextDetector(["de", "fr"])
    assert detector.detect("Where is the nearest train station?").tag in {"de", "fr"}


@pytest.mark.parametrize("text", ["", "   ", "123 456", "🙂", "?!"])
def test_without_letters_it_is_the_first_candidate_and_not_sure(
    detector: TextDetector, text: str
) -> None:
    found = detector.detect(text)
    assert (found.tag, found.confidence) == ("en", 0)


@pytest.mark.parametrize(
    ("text", "tag"), [("谢谢你们", "zh-Hans"), ("謝謝你們", "zh-Hant"), ("臺灣的火車", "zh-Hant")]
)
def test_chinese_is_told_apart_by_script(text: str, tag: str) -> None:
    assert TextDetector(["en", "zh-Hans", "zh-Hant"]).detect(text).tag == tag
    assert TextDetector(["zh-Hant", "zh-Hans"]).detect(text).tag == tag


def test_the_only_candidate_is_the_answer_without_confidence() -> None:
    found = TextDetector(["de"]).detect("Where is the nearest train station?")
    assert (found.tag, found.confidence) == ("de", 0)


def test_a_language_without_statistics_is_never_chosen() -> None:
    detector = TextDetector(["ace", "de", "en"])
    assert detector.detect("Guten Tag, wie geht es Ihnen?").tag == "de"
    assert TextDetector(["ace"]).detect("anything").tag == "ace"


def test_a_candidate_keeps_its_own_tag() -> None:
    detector = TextDetector(["pt-BR", "no", "en-GB"])
    assert detector.detect("Onde fica a estação de trem mais próxima?").tag == "pt-BR"
    assert detector.detect("Hvor er nærmeste togstasjon, og når går toget?").tag == "no"


def test_only_the_beginning_is_looked_at(detector: TextDetector) -> None:
    beginning = "Wo ist der nächste Bahnhof? " * (MAX_CHARACTERS // 28 + 1)
    long = beginning + "Where is the nearest train station? " * 100_000
    assert detector.detect(long) == detector.detect(beginning)


@pytest.mark.parametrize(
    "before",
    [
        " " * 400,
        "\n" * 100_000,
        f"{'-' * 100}\n" * 5,
        f"https://example.org/{'where/is/the/station/' * 30} ",
        "| 1 | 2 | 3 |\n" * 35,
        f"<!-- {'the station ' * 200} -->",
        f"{'{name}'} <b class='where'> a.b@example.org " * 20,
        f"{'12345' * 100}@example.org ",
    ],
)
def test_what_has_no_words_leaves_room_for_those_behind_it(
    detector: TextDetector, before: str
) -> None:
    text = "Wir müssen jetzt nach Hause gehen, weil es schon sehr spät ist."
    found = detector.detect(before + text)
    assert found.tag == "de"
    assert found.confidence > 50


@pytest.mark.parametrize(
    "part", ["a", ">", "a>", "{", "<a", "@", "a@", "1", "www.", "-", " ", "@>"]
)
def test_a_long_text_of_anything_is_read_once(detector: TextDetector, part: str) -> None:
    # A hundred thousand repetitions end within the test's time only if few of them are looked at.
    assert detector.detect(part * 100_000).confidence <= 100


def test_threads_share_a_detector(detector: TextDetector) -> None:
    texts = [text for texts in SENTENCES.values() for text in texts] * 5
    alone = [detector.detect(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(TextDetector(SENTENCES).detect, texts)) == alone


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("Hello", "en"),
        ("Guten Tag", "de"),
        ("Danke", "de"),
        ("Bonjour", "fr"),
        ("Hallo", "de"),
        ("Ich bin Student.", "de"),
        ("J’ai faim", "fr"),
        ("你好", "zh-Hans"),
        ("iPhone 手机壳", "zh-Hans"),
        ("Where is https://example.de/der/nächste/bahnhof?", "en"),
        ("Wo ist {the_name_of_the_station}?", "de"),
        ("<b>Wo</b> ist <span class=where>der Bahnhof</span>?", "de"),
    ],
)
def test_a_word_or_a_few_are_enough(detector: TextDetector, text: str, tag: str) -> None:
    assert detector.detect(text).tag == tag


def test_a_script_of_its_own_needs_no_statistics() -> None:
    detector = TextDetector(["en", "am", "km", "ru"])
    for text, tag in (("ሰላም ጤና ይስጥልኝ", "am"), ("សួស្តី", "km"), ("Привет", "ru"), ("Hi", "en")):
        assert detector.detect(text) == Detection(tag=tag, confidence=100)
    assert statistics_of(["en", "am", "km", "ru"]) == frozenset()
    assert statistics_of(["en", "de", "zh-Hans", "ace"]) == {"EN", "DE"}


def test_a_text_of_two_scripts_is_less_sure() -> None:
    found = TextDetector(["en", "ru"]).detect("Привет from Москва")
    assert found.tag == "ru"
    assert 50 < found.confidence < 90


def test_a_script_that_no_candidate_has_is_passed_over() -> None:
    detector = TextDetector(["en", "zh-Hans"])
    assert detector.detect("Привет") == Detection(tag="en", confidence=0)
    assert detector.detect("Привет, 你好") == Detection(tag="zh-Hans", confidence=57)


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("これは本です", "ja"),
        ("東京都知事選挙に立候補する", "ja"),
        ("这是一本书", "zh-Hans"),
        ("優の良品 我们今天去买很多东西吃吧好不好啊你说", "zh-Hans"),
    ],
)
def test_kana_tell_japanese_from_chinese(text: str, tag: str) -> None:
    assert TextDetector(["en", "ja", "zh-Hans"]).detect(text).tag == tag
    assert TextDetector(["en", "ja"]).detect(text).tag == "ja"


def test_few_chinese_characters_may_be_japanese() -> None:
    sure, unsure = TextDetector(["en", "zh-Hans"]), TextDetector(["en", "ja", "zh-Hans"])
    assert sure.detect("東京").confidence == 100
    assert unsure.detect("東京").confidence == 50
    assert TextDetector(["en", "zh-Hans"]).detect("こんにちは").confidence == 0


def test_chinese_that_is_written_the_same_in_both_ways_is_half_sure() -> None:
    detector = TextDetector(["en", "zh-Hans", "zh-Hant"])
    assert detector.detect("你好") == Detection(tag="zh-Hans", confidence=50)
    assert detector.detect("謝謝") == Detection(tag="zh-Hant", confidence=100)


def test_candidates_are_ranked_by_their_confidence(detector: TextDetector) -> None:
    ranked = detector.ranked("Hand")
    assert ranked[0] == detector.detect("Hand")
    confidences = [found.confidence for found in ranked]
    assert confidences == sorted(confidences, reverse=True)
    assert 98 <= sum(confidences) <= 102
    assert len({found.tag for found in ranked}) == len(ranked) > 1
    assert 0 not in confidences


def test_fewer_statistics_recognise_sentences_too() -> None:
    detector = TextDetector(SENTENCES, is_compact=True)
    detector.read_statistics()
    for tag, (sentence, *_) in SENTENCES.items():
        assert detector.detect(sentence).tag == tag


def test_statistics_that_were_forgotten_are_read_again() -> None:
    detector = TextDetector(["en", "de"])
    detector.read_statistics()
    before = detector.ranked("Guten Tag")
    forget_statistics(statistics_of(["en", "de"]))
    assert detector.ranked("Guten Tag") == before
    forget_statistics([])


def test_no_candidate_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one candidate"):
        TextDetector([])
