"""Entries of dictionaries as text: tab- and comma-separated values into terms, and back.

Owns what an entry may be and how many a dictionary may have. Where dictionaries are kept is
`service.glossaries.store`; how terms come into a translation is `model.text.constraints.glossary`.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from model.text.constraints.glossary import MAX_TERM_CHARACTERS, Entry, Glossary
from model.text.languages.tags import primary_language
from service.errors import RequestError, invalid

MAX_ENTRIES = 2000
"""Entries of a dictionary: looked up for every request, so building them must not be felt."""

EntriesFormat = Literal["tsv", "csv"]
Languages = tuple[str, str]
"""Source and target of a dictionary, without regions, in lower case: `("en", "zh")`."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def read_entries(text: str, kind: EntriesFormat, languages: Languages) -> dict[str, str]:
    """Targets by their sources, in order.

    Args:
        text: An entry a line; empty lines, and a byte order mark before all, count as none.
        kind: A tab between source and target; or a comma, where the codes of the languages may
            come behind.
        languages: Of the dictionary.

    Raises:
        RequestError: A 400 that names the line: no entry, one that is there twice, or too many.
    """
    text = text.removeprefix("\ufeff")
    rows = _tsv_rows(text) if kind == "tsv" else _csv_rows(text, languages)
    entries: dict[str, str] = {}
    for number, one, other in rows:
        source, target = _term(one, number, "source"), _term(other, number, "target")
        if source in entries:
            raise _wrong(number, "has the source of an earlier one")
        entries[source] = target
        if len(entries) > MAX_ENTRIES:
            raise too_many(MAX_ENTRIES + 1)
    if not entries:
        raise invalid("Parameter 'entries' has no entry.", limit="entries")
    return entries


def as_tsv(entries: Mapping[str, str]) -> str:
    """Entries as tab-separated values, without a line break at the end."""
    return "\n".join(f"{source}\t{target}" for source, target in entries.items())


def from_tsv(text: str) -> dict[str, str]:
    """Entries that `as_tsv` wrote."""
    rows = (line.partition("\t") for line in text.split("\n"))
    return {source: target for source, _, target in rows}


def as_glossary(entries: Mapping[str, str]) -> Glossary:
    """What a translation is asked for."""
    return Glossary([Entry(source=source, target=target) for source, target in entries.items()])


def too_many(num_entries: int) -> RequestError:
    """A 400: more entries than a dictionary, or those of one translation, may have."""
    return invalid(
        f"there are {num_entries} entries or more; the limit is {MAX_ENTRIES}",
        value=num_entries,
        limit=MAX_ENTRIES,
    )


def _tsv_rows(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(io.StringIO(text), start=1):
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) != 2:
            raise _wrong(number, "must be a source and a target with one tab between them")
        yield number, fields[0], fields[1]


def _csv_rows(text: str, languages: Languages) -> Iterator[tuple[int, str, str]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for fields in reader:
            if not any(map(str.strip, fields)):
                continue
            if len(fields) not in (2, 4):
                raise _wrong(reader.line_num, "must be a source and a target with a comma between")
            if len(fields) == 4 and _languages_of(fields) != languages:
                shown = " and ".join(languages)
                raise _wrong(reader.line_num, f"is in other languages than {shown}")
            yield reader.line_num, fields[0], fields[1]
    except csv.Error as error:
        raise _wrong(reader.line_num, f"is no comma-separated values: {error}") from error


def _languages_of(fields: list[str]) -> Languages:
    return primary_language(fields[2].strip()), primary_language(fields[3].strip())


def _term(text: str, number: int, name: str) -> str:
    term = text.strip()
    if not term:
        raise _wrong(number, f"has an empty {name}")
    if len(term) > MAX_TERM_CHARACTERS:
        shown = f"has a {name} of {len(term)} characters; the limit is {MAX_TERM_CHARACTERS}"
        raise _wrong(number, shown)
    if _CONTROL.search(term):
        raise _wrong(number, f"has a control character in its {name}")
    return term


def _wrong(number: int, problem: str) -> RequestError:
    return invalid(f"Value for 'entries' not supported: line {number} {problem}", value=number)
