import pytest

from model.text.languages.common_words import MAX_WORDS, is_known, likelihood


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Hallo!", "de", 10.0),
        ("ICH BIN Student.", "de", 100.0),
        ("Hallo", "en", 1.0),
        ("C’est bon", "fr", 10.0),
        ("Hallo", "ace", 1.0),
        ("", "de", 1.0),
        ("ich " * (MAX_WORDS + 1), "de", 1.0),
    ],
)
def test_every_common_word_makes_its_language_ten_times_likelier(
    text: str, language: str, expected: float
) -> None:
    assert likelihood(text, language) == expected


def test_only_some_languages_have_words() -> None:
    assert is_known("no")
    assert not is_known("nb")
    assert not is_known("zh")
