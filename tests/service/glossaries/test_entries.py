import pytest

from service.errors import RequestError
from service.glossaries.entries import (
    MAX_ENTRIES,
    EntriesFormat,
    as_glossary,
    as_tsv,
    from_tsv,
    read_entries,
)

PAIR = ("en", "zh")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("tsv", "cat\t猫\n\n  the river \t 河, “河” \r\n"),
        ("csv", 'cat,猫\r\n\r\nthe river,"河, “河”"\r\n'),
        ("csv", 'cat,猫,EN,zh-Hans\n"the river","河, “河”",en,zh'),
    ],
)
def test_entries_are_read_in_both_notations(kind: EntriesFormat, text: str) -> None:
    entries = read_entries(text, kind, PAIR)
    assert list(entries.items()) == [("cat", "猫"), ("the river", "河, “河”")]
    assert from_tsv(as_tsv(entries)) == entries


@pytest.mark.parametrize(
    ("kind", "text"), [("tsv", "cat\t猫\ndog\t狗"), ("csv", '"cat",猫\ndog,狗')]
)
def test_a_byte_order_mark_is_of_no_source(kind: EntriesFormat, text: str) -> None:
    assert read_entries(f"\ufeff{text}", kind, PAIR) == {"cat": "猫", "dog": "狗"}


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("tsv", "", "no entry"),
        ("tsv", "a\tb\ncat", "line 2 must be a source and a target"),
        ("tsv", "a\tb\tc", "line 1 must be"),
        ("tsv", "\tb", "line 1 has an empty source"),
        ("tsv", "a\t ", "line 1 has an empty target"),
        ("tsv", "a\tb\n\na \tc", "line 3 has the source of an earlier one"),
        ("tsv", f"{'a' * 201}\tb", "source of 201 characters; the limit is 200"),
        ("tsv", "a\tb\u2028c", "control character in its target"),
        ("tsv", "a\x00b\tc", "control character in its source"),
        ("csv", "a,b\nc", "line 2 must be"),
        ("csv", "a,b,de,en", "line 1 is in other languages than en and zh"),
        ("csv", 'a,"b\nc"', "control character"),
        ("csv", 'a,"b"c', "line 1 is no comma-separated values"),
        ("csv", "a," + "b" * 200_000, "line 1 is no comma-separated values"),
    ],
)
def test_what_is_no_entry_is_named_by_its_line(kind: EntriesFormat, text: str, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        read_entries(text, kind, PAIR)
    assert caught.value.problem.status == 400


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_a_dictionary_has_a_limit(kind: EntriesFormat) -> None:
    separator = {"tsv": "\t", "csv": ","}[kind]
    lines = [f"term {number}{separator}x" for number in range(MAX_ENTRIES + 1)]
    assert len(read_entries("\n".join(lines[:-1]), kind, PAIR)) == MAX_ENTRIES
    with pytest.raises(RequestError, match=f"the limit is {MAX_ENTRIES}"):
        read_entries("\n".join(lines), kind, PAIR)


def test_sources_that_differ_in_casing_alone_are_told_apart_by_it() -> None:
    glossary = as_glossary({"Polish": "波兰", "polish": "擦亮", "cat": "猫"})
    terms = glossary.find("Polish cats polish Cat", [])
    assert [term.target for term in terms] == ["波兰", "擦亮", "猫"]
