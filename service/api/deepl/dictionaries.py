"""Glossaries of DeepL's contract as they are asked for: names, languages, dictionaries.

Owns the fields of these requests and their description in the OpenAPI document. Forms name the
fields of a dictionary `dictionaries[0].entries`, as the client for JavaScript does.
"""

import re
from collections.abc import Mapping
from typing import Any

from model.errors import InputError
from model.text.languages.tags import lenient_tag
from service.api.deepl.bodies import content, json_or_form
from service.api.deepl.languages import LanguageLists, base_code
from service.api.deepl.values import choice, needed, unsupported
from service.errors import invalid
from service.glossaries.entries import EntriesFormat, Languages
from service.glossaries.store import NewDictionary

MAX_NAME_CHARACTERS = 1024
MAX_DICTIONARIES = 50
"""Dictionaries of one request; a glossary has no more either."""

_FORM_FIELD = re.compile(r"dictionaries\[([0-9]{1,3})\]\.([a-z_]{1,20})")


def read_name(values: Mapping[str, object]) -> str:
    """The name of a glossary that is to be.

    Raises:
        RequestError: A 400.
    """
    name = needed(values, "name")
    if len(name) > MAX_NAME_CHARACTERS:
        raise invalid(
            f"'name' has {len(name)} characters; the limit is {MAX_NAME_CHARACTERS}",
            value=len(name),
            limit=MAX_NAME_CHARACTERS,
        )
    return name


def read_new_name(values: Mapping[str, object]) -> str | None:
    """Another name for a glossary; None where it keeps its own.

    Raises:
        RequestError: A 400.
    """
    return None if values.get("name") is None else read_name(values)


def read_dictionary(values: Mapping[str, object], lists: LanguageLists) -> NewDictionary:
    """A dictionary with its entries, for languages that are translated here.

    Raises:
        RequestError: A 400.
    """
    languages = read_languages(values)
    if languages not in lists.pairs:
        source, target = languages
        if all(source != known for known, _ in lists.pairs):
            raise unsupported("source_lang", source, reason="no model here translates from it")
        reason = f"no model here translates from {source} to {target}"
        raise unsupported("target_lang", target, reason=reason)
    kind: EntriesFormat = "csv" if _format(values) == "csv" else "tsv"
    return NewDictionary(languages=languages, text=needed(values, "entries"), kind=kind)


def read_dictionaries(
    values: Mapping[str, object], lists: LanguageLists, *, is_needed: bool
) -> list[NewDictionary]:
    """The dictionaries of a glossary with several, each for other languages.

    Raises:
        RequestError: A 400; none, where some are needed.
    """
    given = values.get("dictionaries")
    if given is None:
        given = _from_form(values)
    if given == [] and not is_needed:
        return []
    if not isinstance(given, list) or not 0 < len(given) <= MAX_DICTIONARIES:
        raise unsupported("dictionaries", limit=f"a list of 1 to {MAX_DICTIONARIES}")
    objects = [one for one in given if isinstance(one, dict)]
    if len(objects) < len(given):
        raise unsupported("dictionaries", limit="a list of objects")
    found = [read_dictionary(one, lists) for one in objects]
    if len({one.languages for one in found}) < len(found):
        raise unsupported("dictionaries", reason="two are of the same languages")
    return found


def read_languages(values: Mapping[str, object]) -> Languages:
    """The languages of a dictionary, without regions.

    Raises:
        RequestError: A 400: one is missing or no code.
    """
    return _language(values, "source_lang"), _language(values, "target_lang")


def _language(values: Mapping[str, object], name: str) -> str:
    code = needed(values, name)
    try:
        return base_code(lenient_tag(code))
    except InputError as error:
        raise unsupported(name, code) from error


def _format(values: Mapping[str, object]) -> str | None:
    return choice(values, "entries_format", ("tsv", "csv"))


def _from_form(values: Mapping[str, object]) -> list[dict[str, object]]:
    dictionaries: dict[int, dict[str, object]] = {}
    for name, value in values.items():
        if field := _FORM_FIELD.fullmatch(name):
            dictionaries.setdefault(int(field[1]), {})[field[2]] = value
    return [dictionaries[number] for number in sorted(dictionaries)]


_WORD = {"type": "string"}
_NAME = {**_WORD, "maxLength": MAX_NAME_CHARACTERS}
_LANGUAGES: dict[str, Any] = {
    "source_lang": {**_WORD, "description": "Without a region: en.", "example": "en"},
    "target_lang": {**_WORD, "description": "Likewise: zh for both scripts.", "example": "zh"},
}
_FIELDS: dict[str, Any] = {
    **_LANGUAGES,
    "entries": {**_WORD, "description": "An entry a line.", "example": "cat\t猫"},
    "entries_format": {**_WORD, "enum": ["tsv", "csv"], "default": "tsv"},
}
_REQUIRED = ("source_lang", "target_lang", "entries")
_DICTIONARIES = {
    "type": "array",
    "items": {"type": "object", "required": list(_REQUIRED), "properties": _FIELDS},
    "maxItems": MAX_DICTIONARIES,
}
_NAMED = {"name": "Animals"}
_EXAMPLE = {"source_lang": "en", "target_lang": "zh", "entries": "cat\t猫"}


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _WORD}


def _several(*, is_needed: bool) -> dict[str, Any]:
    """The body of a glossary with several dictionaries, which a form numbers field by field."""
    name = {"name": _NAME}
    fields = {f"dictionaries[0].{one}": schema for one, schema in _FIELDS.items()}
    numbered = {f"dictionaries[0].{one}": value for one, value in _EXAMPLE.items()}
    required = [f"dictionaries[0].{one}" for one in _REQUIRED]
    return json_or_form(
        content(
            ["name", "dictionaries"] if is_needed else [],
            {**name, "dictionaries": _DICTIONARIES},
            {**_NAMED, "dictionaries": [_EXAMPLE]},
        ),
        content(
            ["name", *required] if is_needed else [], {**name, **fields}, {**_NAMED, **numbered}
        ),
    )


_ID = {"parameters": [_in_path("glossary_id")]}
_PAIR = [
    {"name": name, "in": "query", "required": True, "schema": schema}
    for name, schema in _LANGUAGES.items()
]

ONE_GLOSSARY = _ID
"""Of routes that name a glossary."""

ONE_DICTIONARY: dict[str, Any] = {"parameters": [*_ID["parameters"], *_PAIR]}
"""Of routes that name a dictionary, too."""

NEW_GLOSSARY = json_or_form(
    content(["name", *_REQUIRED], {"name": _NAME, **_FIELDS}, {**_NAMED, **_EXAMPLE})
)
"""Of a glossary with one dictionary."""

NEW_GLOSSARIES = _several(is_needed=True)
"""Of a glossary with several."""

CHANGE: dict[str, Any] = {**_ID, **_several(is_needed=False)}
"""Of its change."""

REPLACEMENT: dict[str, Any] = {**_ID, **json_or_form(content(_REQUIRED, _FIELDS, _EXAMPLE))}
"""Of a dictionary that takes the place of another."""
