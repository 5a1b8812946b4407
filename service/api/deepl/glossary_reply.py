"""Replies of DeepL's contract about glossaries: their shapes, and how they are filled.

Owns both. Which glossary is meant is `service.api.deepl.glossaries`.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, Field

from service.api.deepl.reply import ERRORS, DeepLError
from service.glossaries.entries import Languages, as_tsv
from service.glossaries.store import DictionaryInfo, GlossaryInfo


class DeepLLanguagePair(BaseModel):
    """Languages, without regions, that a dictionary can be for."""

    source_lang: str
    target_lang: str


class DeepLLanguagePairs(BaseModel):
    """All of them."""

    supported_languages: list[DeepLLanguagePair]


class DeepLGlossary(DeepLLanguagePair):
    """A glossary with one dictionary."""

    glossary_id: str
    name: str
    ready: bool = Field(description="Always true.")
    creation_time: str
    entry_count: int


class DeepLGlossaries(BaseModel):
    """The caller's glossaries that have one dictionary."""

    glossaries: list[DeepLGlossary]


class DeepLDictionary(DeepLLanguagePair):
    """A dictionary of a glossary."""

    entry_count: int


class DeepLMultilingualGlossary(BaseModel):
    """A glossary with its dictionaries."""

    glossary_id: str
    name: str
    creation_time: str
    dictionaries: list[DeepLDictionary]


class DeepLMultilingualGlossaries(BaseModel):
    """All glossaries of the caller."""

    glossaries: list[DeepLMultilingualGlossary]


class DeepLDictionaryEntries(DeepLLanguagePair):
    """A dictionary with its entries."""

    entries: str
    entries_format: str = Field(description="tsv")


class DeepLEntries(BaseModel):
    """The dictionary that was asked for."""

    dictionaries: list[DeepLDictionaryEntries]


_NOT_FOUND = {"model": DeepLError, "description": "There is no such glossary, or no such entries."}


def responses(
    model: type[BaseModel] | None, status: int = 200, *, may_miss: bool = True
) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that answers with a shape, or with nothing."""
    found: dict[str, Any] = {"description": "Done."} if model is None else {"model": model}
    missing: dict[int | str, dict[str, Any]] = {404: _NOT_FOUND} if may_miss else {}
    return {status: {"description": "The answer.", **found}, **ERRORS, **missing}


ENTRIES_RESPONSES: dict[int | str, dict[str, Any]] = {
    **responses(None),
    200: {
        "content": {"text/tab-separated-values": {"schema": {"type": "string"}}},
        "description": "An entry a line.",
    },
}


def pairs_content(pairs: Mapping[Languages, None]) -> dict[str, object]:
    """A `DeepLLanguagePairs` as plain values."""
    return {"supported_languages": [_languages(pair) for pair in pairs]}


def glossary_content(info: GlossaryInfo) -> dict[str, object]:
    """A `DeepLGlossary` as plain values, of a glossary with one dictionary."""
    (dictionary,) = info.dictionaries
    return {
        "glossary_id": info.id,
        "ready": True,
        "name": info.name,
        **dictionary_content(dictionary),
        "creation_time": _time(info),
    }


def glossaries_content(infos: Sequence[GlossaryInfo]) -> dict[str, object]:
    """A `DeepLGlossaries` as plain values."""
    single = [one for one in infos if len(one.dictionaries) == 1]
    return {"glossaries": [glossary_content(one) for one in single]}


def multilingual_content(info: GlossaryInfo) -> dict[str, object]:
    """A `DeepLMultilingualGlossary` as plain values."""
    return {
        "glossary_id": info.id,
        "name": info.name,
        "dictionaries": [dictionary_content(one) for one in info.dictionaries],
        "creation_time": _time(info),
    }


def dictionary_content(info: DictionaryInfo) -> dict[str, object]:
    """A `DeepLDictionary` as plain values."""
    return {**_languages(info.languages), "entry_count": info.num_entries}


def entries_content(languages: Languages, entries: Mapping[str, str]) -> dict[str, object]:
    """A `DeepLEntries` as plain values."""
    shown = {**_languages(languages), "entries": as_tsv(entries), "entries_format": "tsv"}
    return {"dictionaries": [shown]}


def _languages(languages: Languages) -> dict[str, object]:
    source, target = languages
    return {"source_lang": source, "target_lang": target}


def _time(info: GlossaryInfo) -> str:
    """When it was made: 2026-11-23T20:00:00.000Z, which clients read with a fraction only."""
    made = datetime.fromtimestamp(info.created, UTC).isoformat(timespec="milliseconds")
    return made.replace("+00:00", "Z")
