"""Terms in texts, what stands for them, and whether it is there."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.text.constraints.folding import Folded
from model.text.constraints.glossary import Entry, Glossary, Term, inside, uses_of
from model.text.languages.scripts import is_one_word
from model.text.marks.finding import find_marks
from support.work import num_lines


def glossary(*pairs: tuple[str, str], is_case_sensitive: bool = False) -> Glossary:
    return Glossary(
        [Entry(source=s, target=t, is_case_sensitive=is_case_sensitive) for s, t in pairs]
    )


def found(entries: Glossary, text: str) -> list[tuple[str, str]]:
    terms = entries.find(text, find_marks(text))
    return [(text[term.start : term.end], term.target) for term in terms]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the cat, a cat", ["cat", "cat"]),
        ("concatenate cats cat_ scat", []),
        ("cat", ["cat"]),
        ("(cat) cat's cat-food", ["cat", "cat", "cat"]),
        ("猫cat猫", ["cat"]),
        ("see `cat` and https://x.org/cat", []),
    ],
)
def test_a_term_is_whole_words_outside_marks(text: str, expected: list[str]) -> None:
    assert [source for source, _ in found(glossary(("cat", "Katze")), text)] == expected


@pytest.mark.parametrize(
    ("term", "text", "expected"),
    [
        ("कम", "उसकी कमी है", []),
        ("कम", "यह कम है", ["कम"]),
        ("Mu", "Herr Mu\u0308ller", []),
        ("แมว", "ฉันชอบแมวมาก", ["แมว"]),
        ("ก", "ก็ดี", []),
    ],
)
def test_what_stands_at_a_letter_is_of_its_word(term: str, text: str, expected: list[str]) -> None:
    assert [source for source, _ in found(glossary((term, "x")), text)] == expected
    uses = uses_of([Term(start=0, end=1, target=term, is_case_sensitive=True)], "x", text)
    assert [use.is_hit for use in uses] == [bool(expected)]


def test_where_there_are_no_words_any_characters_are_a_term() -> None:
    entries = glossary(("数据库", "database"), ("库", "library"))
    assert found(entries, "这个数据库和库。") == [("数据库", "database"), ("库", "library")]


def test_the_longest_term_that_begins_somewhere_is_taken() -> None:
    entries = glossary(("web", "Netz"), ("web server", "Webserver"), ("server", "Diener"))
    assert found(entries, "web server, server web") == [
        ("web server", "Webserver"), ("server", "Diener"), ("web", "Netz"),
    ]  # fmt: skip


def test_casing_of_the_source_is_that_of_the_target_unless_it_is_exact() -> None:
    entries = glossary(("printer", "imprimante"))
    assert [target for _, target in found(entries, "printer Printer PRINTER")] == [
        "imprimante", "Imprimante", "IMPRIMANTE",
    ]  # fmt: skip
    exact = glossary(("Go", "Go"), is_case_sensitive=True)
    assert found(exact, "go Go GO") == [("Go", "Go")]


def test_an_exact_entry_goes_before_one_in_any_casing() -> None:
    entries = Glossary(
        [
            Entry(source="Apple", target="Apple", is_case_sensitive=True),
            Entry(source="apple", target="Apfel"),
        ]
    )
    assert found(entries, "Apple apple APPLE") == [
        ("Apple", "Apple"), ("apple", "Apfel"), ("APPLE", "APFEL"),
    ]  # fmt: skip


def test_entries_that_differ_in_casing_alone_are_told_apart_by_it() -> None:
    entries = glossary(("Polish", "Polnische"), ("polish", "polieren"), ("shoe", "Schuh"))
    assert found(entries, "Polish shops polish a SHOE") == [
        ("Polish", "Polnische"), ("polish", "polieren"), ("SHOE", "SCHUH"),
    ]  # fmt: skip
    assert found(entries, "POLISH") == [("POLISH", "POLIEREN")]
    assert found(glossary(("Ai", "x"), ("AI", "y")), "ai Ai AI") == [("Ai", "x"), ("AI", "y")]
    assert found(entries.first_hop(), "Polish polish") == found(entries, "Polish polish")


@pytest.mark.parametrize(
    ("target", "first", "capitals"),
    [
        ("iPhone", "iPhone", "IPHONE"),
        ("großes Telefon", "Großes Telefon", "GROSSES TELEFON"),
        ("eBay app", "eBay app", "EBAY APP"),
        ("ß", "ß", "SS"),
    ],
)
def test_a_target_with_a_casing_of_its_own_keeps_it(target: str, first: str, capitals: str) -> None:
    entries = glossary(("phone", target))
    assert found(entries, "phone") == [("phone", target)]
    assert found(entries, "Phone") == [("Phone", first)]
    assert found(entries, "PHONE") == [("PHONE", capitals)]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("machine learning", "machine\u00a0learning"),
        ("machine learning", "machine  learning"),
        ("machine\u202flearning", "machine learning"),
        ("Müller", "Mu\u0308ller"),
        ("Mu\u0308ller", "Müller"),
        ("한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8"),
        ("O'Brien", "O’Brien"),
        ("O’Brien", "O'Brien"),
        ("e-mail", "e\u2011mail"),
        ("server", "ser\u00adver"),
        ("API", "ＡＰＩ"),
        ("Å", "\u212b"),
    ],
)
def test_a_term_is_found_in_every_spelling_of_its_characters(source: str, text: str) -> None:
    line = f"Ein {text}, „{text}“ \u00ad und e\u0301  {text}"
    assert found(glossary((source, "X")), line) == [(text, "X")] * 3
    uses = uses_of([Term(start=0, end=1, target=source, is_case_sensitive=True)], "x", line)
    assert uses[0].is_hit


@pytest.mark.parametrize(
    ("source", "text"),
    [("ser", "ser\u00adver"), ("a b", "a\nb"), ("a b", "a\tb"), ("Mu", "Mu\u0308ller")],
)
def test_other_characters_are_another_term(source: str, text: str) -> None:
    assert found(glossary((source, "X")), text) == []


def slow_find(entries: Sequence[Entry], text: str) -> list[tuple[int, int, str]]:
    """The terms of a text in common spelling: at each place every entry is tried."""
    terms, start = [], 0

    def is_edge(place: int) -> bool:
        sides = text[max(place - 1, 0) : place], text[place : place + 1]
        return not is_one_word(*sides, joining="_")

    def is_there(entry: Entry) -> bool:
        found = text[start : start + len(entry.source)]
        is_same = found == entry.source
        if not entry.is_case_sensitive:
            is_same = found.lower() == entry.source.lower()
        return is_same and is_edge(start) and is_edge(start + len(entry.source))

    while start < len(text):
        fitting = [entry for entry in entries if is_there(entry)]
        if fitting:
            best = max(fitting, key=lambda entry: (len(entry.source), entry.is_case_sensitive))
            terms.append((start, start + len(best.source), best.target))
            start += len(best.source)
        else:
            start += 1
    return terms


SOURCES = st.text(st.sampled_from("abAé猫-"), min_size=1, max_size=5)


@given(
    st.lists(st.tuples(SOURCES, st.booleans()), max_size=12, unique_by=lambda one: one[0].lower()),
    st.lists(SOURCES, max_size=20),
)
@settings(max_examples=500, deadline=None)
def test_terms_are_found_as_if_every_entry_was_tried_at_every_place(
    sources: list[tuple[str, bool]], parts: list[str]
) -> None:
    entries = [
        Entry(source=source, target=f"猫{number}", is_case_sensitive=is_case_sensitive)
        for number, (source, is_case_sensitive) in enumerate(sources)
    ]
    text = "".join(parts)
    terms = Glossary(entries).find(text, [])
    assert [(term.start, term.end, term.target) for term in terms] == slow_find(entries, text)


def test_entries_that_begin_alike_are_not_tried_one_by_one() -> None:
    def work(num: int) -> int:
        entries = glossary(*(("我" * length + "x", "x") for length in range(1, num)))
        return num_lines(lambda: entries.find("我" * 2000, []))

    assert work(160) < 1.5 * work(20)


def test_a_place_in_the_translation_serves_one_term_and_whole_words_count() -> None:
    terms = glossary(("server", "Server"), ("web server", "Webserver")).find(
        "server web server server", []
    )
    uses = uses_of(terms, "server web server server", "Der Webserver und der SERVER, Servern")
    assert [(use.source, use.is_hit) for use in uses] == [
        ("server", True), ("web server", True), ("server", False),
    ]  # fmt: skip
    term = Term(start=0, end=2, target="Go", is_case_sensitive=True)
    assert not uses_of([term], "Go", "go")[0].is_hit
    assert uses_of([term], "Go", "用Go写")[0].is_hit


def slow_hits(terms: Sequence[Term], translation: str) -> list[bool]:
    """Whether each term's target is there, found by trying every place anew."""
    translation = Folded(translation).text
    left = {True: translation, False: translation.lower()}
    hits = [False] * len(terms)
    for index in sorted(range(len(terms)), key=lambda index: -len(terms[index].target)):
        term = terms[index]
        target = Folded(term.target).text
        target = target if term.is_case_sensitive else target.lower()
        text = left[term.is_case_sensitive]
        for start in range(len(text) - len(target) + 1):
            end = start + len(target)
            is_whole = not any(
                is_one_word(text[max(place - 1, 0) : place], text[place : place + 1], joining="_")
                for place in (start, end)
            )
            if text[start:end] == target and is_whole:
                left = {
                    key: value[:start] + "\0" * len(target) + value[end:]
                    for key, value in left.items()
                }
                hits[index] = True
                break
    return hits


WORDS = st.text(st.sampled_from("abA_ -猫é1"), min_size=1, max_size=4)


@given(st.lists(st.tuples(WORDS, st.booleans()), max_size=12), st.lists(WORDS, max_size=20))
@settings(max_examples=500, deadline=None)
def test_targets_are_found_as_if_every_place_was_tried(
    targets: list[tuple[str, bool]], parts: list[str]
) -> None:
    terms = [
        Term(start=0, end=1, target=target, is_case_sensitive=is_case_sensitive)
        for target, is_case_sensitive in targets
    ]
    translation = "".join(parts)
    uses = uses_of(terms, "x", translation)
    assert [use.is_hit for use in uses] == slow_hits(terms, translation)


@pytest.mark.parametrize("translation", ["xaby ", "ab ", "猫ab猫", "xab", "abab "])
def test_twice_the_terms_in_twice_the_text_are_about_twice_the_work(translation: str) -> None:
    def work(num: int) -> int:
        term = Term(start=0, end=2, target="ab", is_case_sensitive=False)
        return num_lines(lambda: uses_of([term] * num, "ab", translation * num * 2))

    assert work(400) < 3 * work(200)


def test_the_terms_of_a_part_have_their_places_there() -> None:
    text = "a cat and a cat"
    terms = glossary(("cat", "Katze")).find(text, [])
    (term,) = inside(terms, 6, len(text))
    assert text[6:][term.start : term.end] == "cat"


def test_the_terms_of_a_stretch_are_those_that_are_whole_in_it() -> None:
    chance = Random(3)
    for _ in range(200):
        places = sorted(chance.sample(range(60), 20))
        terms = [
            Term(start=start, end=end, target=f"{start}", is_case_sensitive=False)
            for start, end in zip(places[::2], places[1::2], strict=True)
        ]
        start, end = sorted(chance.sample(range(61), 2))
        own = [term for term in terms if start <= term.start and term.end <= end]
        found = inside(terms, start, end)
        assert [term.target for term in found] == [term.target for term in own]
        assert [(term.start + start, term.end + start) for term in found] == [
            (term.start, term.end) for term in own
        ]


def test_no_more_terms_are_looked_at_than_a_stretch_has() -> None:
    terms = [
        Term(start=2 * n, end=2 * n + 1, target="x", is_case_sensitive=False) for n in range(4000)
    ]
    assert num_lines(lambda: inside(terms, 5000, 5020)) < 1000


def test_the_hop_out_of_a_pivot_leaves_what_the_hop_into_it_has_put() -> None:
    entries = glossary(("printer", "imprimante"), ("printers", "imprimantes"))
    assert entries.first_hop().is_carried
    second = entries.second_hop()
    assert second.is_carried
    assert found(second, "The Imprimante prints") == [("Imprimante", "Imprimante")]
