"""The language of a text: among the candidates alone, with how sure it is."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from model.text.detection import MAX_CHARACTERS, TextDetector

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


def test_threads_share_a_detector(detector: TextDetector) -> None:
    texts = [text for texts in SENTENCES.values() for text in texts] * 5
    alone = [detector.detect(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(TextDetector(SENTENCES).detect, texts)) == alone


def test_no_candidate_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one candidate"):
        TextDetector([])
