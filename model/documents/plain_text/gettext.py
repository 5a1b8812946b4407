"""Catalogues of gettext (.po, .pot): messages that have no translation get one; others stay.

Owns the notation of entries; what bytes mean, `gettext_charset` knows, and `gettext_plurals` which
form of a plural is made of the singular. Comments, contexts, obsolete entries and whatever already
has a translation are kept as they are, and so is the header, which names its language if it did
not.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from model.documents.notation.document import Document, DocumentOptions, document_of
from model.documents.notation.limits import DocumentLimits
from model.documents.notation.template import LanguagePlace, Piece, TemplateBuilder
from model.documents.plain_text.gettext_charset import CatalogueText, decoded_catalogue
from model.documents.plain_text.gettext_plurals import PluralRule, plural_rule
from model.errors import DocumentError

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_KEYWORD = re.compile(
    r"(msgctxt|msgid_plural|msgid|msgstr(?:\s*\[\s*\d{1,3}\s*\])?)\s*(?=\"|$)", re.ASCII
)
_DOMAIN = re.compile(r"domain\s*\"[^\"]*\"")
"""What stands before entries that are for another file; it ends an entry, as a comment does."""
_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.)*+)\"")
_STRINGS = re.compile(r"(?:\s*+\"(?:[^\"\\\n]|\\.)*+\")++\s*+")
"""One after another, as C has them."""
_TRANSLATION = "msgstr"
_NO_DIGITS = re.compile(r"\D++")
_NO_LANGUAGE = re.compile(r"^[^\S\n]*+(?:msgstr[^\S\n]*+)?\"Language:([ \t]*+)\\n", re.MULTILINE)
_LOCALES = {"zh-Hans": "zh_CN", "zh-Hant": "zh_TW"}
_MAX_FIELDS = 100
"""Of one entry; no language has so many forms of the plural."""
_NOTATION = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": None}
)


@dataclass(slots=True, kw_only=True)
class _Field:
    """One keyword of an entry: its lines, and what they say."""

    keyword: str
    lines: list[str]
    parts: list[str]

    @property
    def text(self) -> str:
        """What its lines say."""
        return "".join(self.parts)


@dataclass(slots=True, kw_only=True)
class _Entry:
    fields: list[_Field] = field(default_factory=list)

    @property
    def translations(self) -> list[_Field]:
        """Its translation, or all forms of it."""
        return [one for one in self.fields if one.keyword.startswith(_TRANSLATION)]

    @property
    def is_header(self) -> bool:
        """Whether it is the entry that tells of the catalogue."""
        return self.said("msgid") == "" and self.said("msgctxt") is None

    @property
    def line_break(self) -> str:
        """How its lines end."""
        has_return = bool(self.fields) and self.fields[0].lines[0].endswith("\r\n")
        return "\r\n" if has_return else "\n"

    def said(self, keyword: str) -> str | None:
        """What a keyword says, None if it is not there."""
        return next((one.text for one in self.fields if one.keyword == keyword), None)


def open_po(data: bytes, _options: DocumentOptions, limits: DocumentLimits) -> Document:
    """A catalogue as a document.

    Raises:
        DocumentError: It is not in the charset that it declares, that charset is not known, or a
            line of it is no part of an entry.
    """
    catalogue = decoded_catalogue(data)
    builder = TemplateBuilder(kind="po", limits=limits)
    rule = _plural_rule(catalogue)
    for one in _read(catalogue):
        builder.pieces.extend([one] if isinstance(one, str) else _written(builder, one, rule))
    return document_of("po", builder.template(), catalogue.encoded)


def _plural_rule(catalogue: CatalogueText) -> PluralRule:
    """What its header, which may be any of its entries, says of plurals."""
    entries = (one for one in _read(catalogue) if isinstance(one, _Entry) and one.is_header)
    return next((plural_rule(one.said(_TRANSLATION) or "") for one in entries), PluralRule())


def _read(catalogue: CatalogueText) -> Iterator[_Entry | str]:
    """Its entries, and the lines between them."""
    entry = _Entry()
    for number, line in enumerate(_LINE.findall(catalogue.text), start=1):
        bare = line.strip()
        keyword = _KEYWORD.match(bare)
        strings = bare[keyword.end() :] if keyword else bare
        if not bare and entry.fields:
            entry.fields[-1].lines.append(line)
        elif not bare or bare.startswith("#") or _DOMAIN.fullmatch(bare):
            if entry.fields:
                yield entry
                entry = _Entry()
            yield line
        elif not (_STRINGS.fullmatch(strings) or (keyword and not strings)) or (
            keyword is None and not entry.fields
        ):
            raise DocumentError("po", f"has on line {number} what is no part of an entry")
        elif keyword is not None:
            if len(entry.fields) >= _MAX_FIELDS:
                raise DocumentError("po", f"has an entry of more than {_MAX_FIELDS} fields")
            if keyword[1] in ("msgid", "msgctxt") and entry.translations:
                yield entry
                entry = _Entry()
            said = [catalogue.meant(one) for one in _STRING.findall(strings)]
            name = "".join(keyword[1].split())
            entry.fields.append(_Field(keyword=name, lines=[line], parts=said))
        else:
            entry.fields[-1].lines.append(line)
            entry.fields[-1].parts.extend(catalogue.meant(one) for one in _STRING.findall(strings))
    yield entry


def _written(builder: TemplateBuilder, entry: _Entry, rule: PluralRule) -> Iterator[Piece]:
    """An entry, with places for what it lacks."""
    bare = next((one.keyword for one in entry.fields if not one.parts), None)
    if bare is not None:
        raise DocumentError("po", f"has a {bare} that no string follows")
    single, several = entry.said("msgid"), entry.said("msgid_plural")
    is_said = any(map(str.isalpha, f"{single}{several}"))
    if entry.is_header:
        yield from _header("".join(line for one in entry.fields for line in one.lines))
        return
    notation = partial(_notation, line_break=entry.line_break)
    for one in entry.fields:
        # Form by form: gettext shows an empty one beside others as nothing.
        if not single or one.text or not one.keyword.startswith(_TRANSLATION):
            yield "".join(one.lines)
            continue
        text = (single if _is_of_singular(one, entry, rule) else several) or ""
        raw = "".join(one.lines)
        start = raw.index('"')
        end = raw.rindex('"') + 1
        yield raw[:start]
        place = builder.plain(text, raw[start:end], notation, is_source=False)
        # A number alone is not translated, and not left empty either.
        yield notation(text) if isinstance(place, str) and several and is_said else place
        yield raw[end:]


def _is_of_singular(one: _Field, entry: _Entry, rule: PluralRule) -> bool:
    """Whether a translation of an entry is made of what it says of one."""
    single, several = entry.said("msgid") or "", entry.said("msgid_plural")
    form = int(_NO_DIGITS.sub("", one.keyword) or 0)
    if several is None:
        return form == 0
    return rule.is_of_singular(form, len(entry.translations), single, several)


def _header(raw: str) -> Iterator[Piece]:
    """The header, with a place for its language if it names none."""
    found = _NO_LANGUAGE.search(raw)
    if found is None:
        yield raw
        return
    yield raw[: found.start(1)]
    yield LanguagePlace(original=found[1], written=_locale)
    yield raw[found.end(1) :]


def _locale(tag: str) -> str:
    """A tag (BCP 47) as gettext names languages, behind a colon."""
    return f" {_LOCALES.get(tag) or tag.replace('-', '_')}"


def _notation(text: str, *, line_break: str) -> str:
    """A text as quoted strings, one a line."""
    lines = [f'"{line.translate(_NOTATION)}"' for line in text.splitlines(keepends=True)]
    return lines[0] if len(lines) == 1 else line_break.join(['""', *lines])
