import pytest

from model.text.marks.casing import casing_of, keeps_title_words, lowered, raised


@pytest.mark.parametrize(
    ("text", "casing"),
    [
        ("PLEASE DO NOT TOUCH", "upper"),
        ("WARNING!", "upper"),
        ("ÖFFNEN SIE DIE TÜR", "upper"),
        ("How To Install The New Package", "title"),
        ("A Tale of Two Great Cities", "title"),
        ("NATO", None),
        ("EXIT", "upper"),
        ("HELP!", "upper"),
        ("AIDS", None),
        ("IKEA", None),
        ("Exit", None),
        ("OK, USA", None),
        ("We like NATO and the USA", None),
        ("Angela Merkel", None),
        ("Ordinary words here", None),
        ("12:30", None),
        ("请不要触摸", None),
        ("", None),
        ("TX 单元可以选择各种不同的时钟源，其中外部时钟源较为特殊。", None),
        ("IDENTIFY を使う", None),
        ("SPI CLOCK 时钟", None),
    ],
)
def test_only_whole_sentences_are_in_a_casing(text: str, casing: str | None) -> None:
    assert casing_of(text, "en") == casing


def test_a_small_sharp_s_is_no_small_letter_of_capitals() -> None:
    assert casing_of("DIE STRAßE IST LANG", "de") == "upper"
    assert lowered("DIE STRAßE IST LANG", "de") == "Die straße ist lang"
    assert casing_of("Die Straße Ist Lang", "en") == "title"
    assert casing_of("ß", "de") is None


def test_german_titles_cannot_be_told_from_nouns() -> None:
    assert casing_of("Hunde Katzen Vögel Fische", "de") is None
    assert casing_of("Hunde Katzen Vögel Fische", "en") == "title"


def test_short_signs_are_words_of_their_own_language() -> None:
    assert casing_of("HILFE", "de-DE") == "upper"
    assert casing_of("HILFE", "en") is None
    assert casing_of("HELP", "fr") is None


@pytest.mark.parametrize(
    ("source", "target", "is_kept"),
    [
        ("Terms And Conditions Of Use", "Terms And Conditions Of verwenden", True),
        ("Terms And Conditions Of Use", "定位和条件 Of 使用", True),
        ("Terms And Conditions Of Use", "Nutzungsbedingungen", False),
        ("The Lord Of The Rings Is Here", "Der Herr der Ringe ist hier", False),
        ("How To Install It", "How man es installiert", False),
        ("Bank of America opens", "Bank Of America öffnet", False),
        ("They sing And I hear Of it", "Sie And Of", False),
        ("Angela Merkel Meets Vladimir Putin", "Angela Merkel trifft Vladimir Putin", False),
    ],
)
def test_small_words_of_a_title_that_stay_are_no_names(
    source: str, target: str, is_kept: bool
) -> None:
    assert keeps_title_words(source, target) is is_kept


def test_lowered_is_as_long_and_begins_with_a_capital() -> None:
    assert lowered("“HOW CAN I GO TO THE USA?”", "en") == "“How can I go to the usa?”"
    assert lowered("ISTANBUL ÇIKIŞI", "tr") == "Istanbul çıkışı"
    assert lowered("GO TO İSTANBUL", "en") == "Go to istanbul"
    assert lowered("ﬁn de la Nuit Blanche", "fr") == "ﬁn de la nuit blanche"


@pytest.mark.parametrize(
    ("text", "casing", "language", "expected"),
    [
        ("Bitte nicht berühren", "upper", "de", "BITTE NICHT BERÜHREN"),
        ("请不要触摸", "upper", "zh", "请不要触摸"),
        ("çıkış izni", "upper", "tr", "ÇIKIŞ İZNİ"),
        ("How to install the new package", "title", "en", "How to Install the New Package"),
        ("So installiert man das Paket", "title", "de", "So installiert man das Paket"),
    ],
)
def test_casing_comes_back_where_the_target_has_it(
    text: str, casing: str, language: str, expected: str
) -> None:
    assert raised(text, casing, language) == expected  # type: ignore[arg-type]
