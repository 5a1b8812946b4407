"""Languages of one script are told apart by the run's own text, which may be dirty."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from model.errors import DataError
from model.train.config.data import CorpusConfig, DataConfig, DirectionConfig
from model.train.config.filters import FilterConfig
from model.train.config.yaml_lines import KeyPlaces
from model.train.data import languages
from model.train.data.corpora import filter_corpora, find_corpora
from model.train.data.filtering import Verdict
from model.train.data.languages import LanguageProfiles, LanguageSample, learn_languages

MARGIN = 0.2
WORDS = {
    "en": (
        "the house stands near a quiet river where children wash their small boats every morning"
        " before they walk through wet grass towards school with bread and cheese which the old"
        " baker gave them because nobody else would have bought what was left from yesterday"
    ),
    "de": (
        "das haus steht an einem ruhigen fluss wo kinder jeden morgen ihre kleinen boote waschen"
        " bevor sie durch nasses gras zur schule gehen mit brot und käse welche der alte bäcker"
        " ihnen gab weil niemand sonst gekauft hätte was von gestern übrig geblieben war"
    ),
    "fr": (
        "la maison se trouve près d'une rivière tranquille où les enfants lavent chaque matin"
        " leurs petits bateaux avant de marcher dans l'herbe mouillée vers l'école avec du pain"
        " et du fromage que le vieux boulanger leur donne parce que personne n'en voulait plus"
    ),
}


def sentences(language: str, num_lines: int, seed: int = 0) -> list[str]:
    draw = random.Random(f"{language} {seed}")
    words = WORDS[language].split()
    return [
        " ".join(draw.choices(words, k=draw.randint(5, 12))).capitalize() + "."
        for _ in range(num_lines)
    ]


def learned(texts: dict[str, list[str]]) -> LanguageProfiles:
    return learn_languages(texts, MARGIN)


def share(profiles: LanguageProfiles, lines: Sequence[str], tag: str) -> float:
    """Of lines, how many are foreign."""
    return float(profiles.are_foreign(lines, tag, MARGIN).mean())


@pytest.fixture(scope="module")
def profiles() -> LanguageProfiles:
    return learned({language: sentences(language, 400) for language in WORDS})


def test_lines_of_every_other_language_of_the_run_are_found(profiles: LanguageProfiles) -> None:
    for tag in WORDS:
        for language in WORDS:
            lines = sentences(language, 200, seed=1)
            assert share(profiles, lines, f"{tag}-XX") == float(language != tag)


def test_what_says_little_is_left_alone(profiles: LanguageProfiles) -> None:
    words = "The house stands near a quiet river where children wash their boats"
    lines = [
        "",
        "3.14, 42 %",
        words[:9],  # eight letters
        "Herr Schulz",
        "https://example.org/the/house/stands/near/a/quiet/river/where/children/wash",
        "the_house(stands_near) --near=quiet.river /where/children/wash",
    ]
    assert share(profiles, lines, "de") == 0.0
    assert profiles.are_foreign([words[:9], words[:16]], "de", 0.0).tolist() == [False, True]
    assert share(profiles, [words, words.upper(), f"{words}: 3.14 {lines[4]}"], "de") == 1.0
    assert not profiles.are_foreign([words], "de", 5.0).any()


def test_a_line_of_few_letters_needs_as_much_as_a_longer_one(profiles: LanguageProfiles) -> None:
    word = "the house stands"

    def margins(line: str) -> float:
        """The largest margin at which it is foreign, in steps."""
        steps = np.arange(0.0, 5.0, 0.01)
        return max(step for step in steps if profiles.are_foreign([line], "de", step)[0])

    num_letters = 14
    assert margins(" ".join(3 * [word])) / margins(word) == pytest.approx(
        languages.FEW_LETTERS / num_letters, rel=0.02
    )


@pytest.mark.parametrize("every", [10, 4])
def test_a_share_of_swapped_lines_is_found_though_profiles_were_learned_from_it(every: int) -> None:
    english, german = sentences("en", 600), sentences("de", 600)
    swapped = range(0, 600, every)
    for number in swapped:
        english[number], german[number] = german[number], english[number]
    found = learned({"en": english, "de": german}).are_foreign(german, "de", MARGIN)
    assert np.flatnonzero(found).tolist() == list(swapped)


def test_what_was_found_is_not_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    english, german = sentences("en", 600), sentences("de", 600)
    dirty = {"en": english, "de": [*german, *english[:250]]}
    clean = {"en": english, "de": german}
    lines = sentences("en", 50, seed=1)

    def likelihoods(texts: dict[str, list[str]]) -> list[float]:
        return learned(texts)._measure(lines)[0].ravel().tolist()

    wanted = pytest.approx(likelihoods(clean), rel=1e-5)
    assert likelihoods(dirty) == wanted
    monkeypatch.setattr(languages, "_NUM_REFITS", 0)
    assert likelihoods(dirty) != wanted


def test_likelihoods_are_those_of_a_plain_markov_chain() -> None:
    """Counted and smoothed letter by letter, in dictionaries."""
    lines = {language: sentences(language, 5) for language in ("en", "de")}
    found = learned(lines)
    own = lines["en"]

    def triples(line: str) -> list[str]:
        words = "".join(letter if letter.isalpha() else " " for letter in line.lower()).split()
        return [f"  {word} "[place : place + 3] for word in words for place in range(len(word) + 1)]

    seen = Counter(triple for line in own for triple in triples(line))
    totals: dict[int, Counter[str]] = {length: Counter() for length in (0, 1, 2)}
    pairs, single = Counter[str](), Counter[str]()
    for triple, count in seen.items():
        pairs[triple[1:]] += count
        single[triple[2]] += count
        for length, counts in totals.items():
            counts[triple[2 - length : 2]] += count

    def probability(triple: str) -> float:
        one = (single[triple[2]] + 1) / (totals[0][""] + 128)
        two = (pairs[triple[1:]] + 10 * one) / (totals[1][triple[1]] + 10)
        three = (seen[triple] + 10 * two) / (totals[2][triple[:2]] + 10)
        return 0.99 * three + 0.01 / 128

    text = ["Das Brot, das Kinder kaufen!", "Near the river; 7 boats", ""]
    expected = [sum(math.log(probability(triple)) for triple in triples(line)) for line in text]
    likelihoods, num_letters = found._measure(text)
    assert likelihoods[:, 0].tolist() == pytest.approx(expected, rel=1e-4)
    assert num_letters.tolist() == [22, 17, 0]


def test_a_verdict_depends_neither_on_company_nor_on_chunks(
    profiles: LanguageProfiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [*sentences("en", 20), *sentences("de", 20), "", "x" * 3000]
    together = profiles.are_foreign(lines, "de", MARGIN)
    alone = [bool(profiles.are_foreign([line], "de", MARGIN)[0]) for line in lines]
    assert together.tolist() == alone
    monkeypatch.setattr(languages, "_LINES_AT_ONCE", 3)
    assert np.array_equal(profiles.are_foreign(lines, "de", MARGIN), together)
    assert profiles.are_foreign([], "de", MARGIN).tolist() == []


def test_marks_are_letters_and_rare_letters_are_one() -> None:
    rare = "".join(map(chr, range(0x4E00, 0x4E00 + 200)))
    found = learned({"hi": ["नदी के किनारे"] * 3, "zh": [rare]})
    numbers = found.symbols[[ord(character) for character in "नीक7 ,"]].tolist()
    assert 0 not in numbers[:3]
    assert numbers[3:] == [0, 0, 0]
    assert len({*found.symbols.tolist()}) == 128


def test_a_sample_is_bounded_and_depends_on_the_lines_alone() -> None:
    lines = sentences("en", 500)

    def chosen(lines: list[str], *, max_lines: int = 100, tag: str = "en") -> set[str]:
        sample = LanguageSample(max_lines)
        for line in lines:
            sample.add(tag, line)
            sample.add("de", line)
        found = sample.lines
        assert list(found) == ["en", "de"]
        assert sorted(found["en"]) == sorted(found["de"])
        return set(found["en"])

    assert 25 <= len(chosen(lines)) <= 100
    assert chosen(lines) == chosen([*lines[::-1], *lines], tag="en-GB")
    assert chosen(lines, max_lines=1000) == set(lines)
    assert chosen(["x" * 1500]) == {"x" * 1000}


def test_pairs_of_several_directions_are_judged_by_all_of_the_text(tmp_path: Path) -> None:
    """A corpus that is all wrong is found by the text of other directions."""
    english, german, french = (sentences(language, 300) for language in WORDS)
    german[7], english[9], french[11] = english[7], german[9], german[11]
    wrong = sentences("fr", 5, seed=2)
    files = {
        "en-de/train/talk.en": english,
        "en-de/train/talk.de": german,
        "en-fr/train/talk.en": english,
        "en-fr/train/talk.fr": french,
        "en-fr/train/swapped.en": [*wrong, english[0]],
        "en-fr/train/swapped.fr": [*english[20:25], french[0]],
    }
    for name, lines in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    talk, swapped = (CorpusConfig(name=name, licence="CC0-1.0") for name in ("talk", "swapped"))

    def direction(folder: str, source: str, target: str, *train: CorpusConfig) -> DirectionConfig:
        return DirectionConfig(
            folder=folder, source_language=source, target_language=target, train=train, dev=("x",)
        )

    data = DataConfig(
        pairs=(
            direction("en-de", "en", "de", talk),
            direction("en-de", "de", "en", talk),
            direction("en-fr", "en", "fr", talk, swapped),
        ),
        filters=FilterConfig(language_margin=MARGIN),
    )
    places = KeyPlaces()
    found = filter_corpora(find_corpora(data, tmp_path, places), data, places).verdicts
    said = [
        {int(number): Verdict(verdicts[number]).words for number in np.flatnonzero(verdicts)}
        for verdicts in found
    ]
    assert said == [
        {7: "target language", 9: "source language"},
        {7: "source language", 9: "target language"},
        {9: "source language", 11: "target language"},
        dict.fromkeys(range(5), "source language"),
    ]


def test_damaged_text_is_named_while_languages_are_learned(tmp_path: Path) -> None:
    folder = tmp_path / "en-de" / "train"
    folder.mkdir(parents=True)
    (folder / "talk.en").write_text("the house\nthe river\n", encoding="utf-8")
    (folder / "talk.de").write_text("das haus\n", encoding="utf-8")
    data = DataConfig(
        folder="en-de",
        source_language="en",
        target_language="de",
        train=(CorpusConfig(name="talk", licence="CC0-1.0"),),
        dev=("x",),
        filters=FilterConfig(language_margin=MARGIN),
    )
    places = KeyPlaces(path=Path("a.yaml"), lines={"data.train": 3, "data.train[0]": 4})
    with pytest.raises(
        DataError, match=r"^a\.yaml:4: data\.train\[0\]: .*talk\.de:2: no such line"
    ):
        filter_corpora(find_corpora(data, tmp_path, places), data, places)
