"""Notation of translated lines of Markdown: a reader of the page gets what the text says.

Owns how characters are escaped, and how emphasis is written where its signs would not open or close
(CommonMark 0.31.2, "Left-flanking and right-flanking delimiter runs"): spaces and punctuation go
out of the pair, a space comes beside it, or it becomes a tag of HTML. What was written is read
again, and the next way is tried if it says something else. Which codes there are is
`model.documents.plain_text.markdown_codes`.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from model.documents.plain_text.markdown_blocks import BlockReader
from model.documents.plain_text.markdown_inline import InlineReader, PartKind, is_same
from model.text.marks.inline_codes import ANY_CODE, partners

_SPECIAL = re.compile(r"[\\`*_\[\]<&~$]|!(?=\Z|\[)")
"""What may be more than a character."""
_OFTEN_ESCAPED = frozenset("\\`*_{}[]<>$@~^=|:&#")
"""What means something in Markdown or a dialect of it, wherever it stands."""
_NUMBER = re.compile(r"(\d{1,9})([.)])")
_ELEMENTS = {"*": "em", "_": "em", "**": "strong", "__": "strong", "~~": "del"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a text stands.

    Attributes:
        is_begin: A paragraph, or a line of one, begins with it; a sign may make it another block.
        is_cell: In a table, where a wall is a character of no cell.
        is_label: In the brackets of an image.
        around: What is written before and behind it.
    """

    is_begin: bool = False
    is_cell: bool = False
    is_label: bool = False
    around: tuple[str, str] = ("", "")

    def kept(self, notation: str) -> str:
        """Notation that is not read again, as it is written here."""
        return notation.replace("|", r"\|") if self.is_cell else notation


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What reads again what was written.

    Attributes:
        blocks: What a line is.
        reader: What is inside of it.
    """

    blocks: BlockReader
    reader: InlineReader

    def as_paragraph(self, line: str) -> str:
        """A line that begins a paragraph, and nothing else."""
        if line[:1].isalpha() or self.blocks.is_paragraph(line):
            return line
        number = _NUMBER.match(line)
        if number:
            return f"{number[1]}\\{line[len(number[1]) :]}"
        return f"\\{line}" if "!" <= line[:1] <= "~" else line


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """What an inline code stands for.

    Attributes:
        said: What a reader of the page gets of it.
        mark: The signs of emphasis that it consists of, if its partner is in the text.
    """

    said: tuple[tuple[PartKind, str], ...]
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How the translations of one text are written.

    Attributes:
        proof: What reads them again.
        place: Where the text stands.
        signs: What its codes are.
        source: Characters that it writes as escapes or references, and how.
    """

    proof: Proof
    place: Place
    signs: Mapping[str, Sign]
    source: Sequence[tuple[str, str]]

    def written(self, said: str, notation: Mapping[str, str]) -> str:
        """The notation of a translation.

        Args:
            said: It has the codes of its text.
            notation: What each of them stands for.
        """
        line, begun = "", said
        for draft in self._drafts(_Draft(said=said, signs=self.signs, notation=notation)):
            line, begun = draft.written(self._table(draft.is_escaped), self.place), draft.said
            if self._is_read(draft, line):
                break
        if self.place.is_begin and begun and not ANY_CODE.match(begun):
            line = self.proof.as_paragraph(line)
        before, after = self.place.around
        return before + line + after

    def _drafts(self, draft: "_Draft") -> Iterator["_Draft"]:
        """Ways of writing it, the plainest first."""
        draft = draft.with_spaces_outside()
        yield draft
        if draft.has_emphasis:
            draft = draft.with_links_outside().with_punctuation_outside()
            draft = draft.with_spaces_outside().with_stars()
            yield draft
        draft = replace(draft, is_escaped=True)
        yield draft
        yield draft.with_spaces_beside()
        if draft.has_emphasis:
            yield draft.with_tags().with_spaces_beside()

    def _is_read(self, draft: "_Draft", line: str) -> bool:
        if not draft.has_codes and not _SPECIAL.search(line):
            return True
        line = line.replace(r"\|", "|") if self.place.is_cell else line
        read = self.proof.reader.parts(line)
        return is_same([(part.kind, part.said) for part in read], list(draft.expected()))

    def _table(self, is_escaped: bool) -> dict[int, str]:  # noqa: FBT001  # of a draft
        """How single characters are written."""
        special = "\\`*_[]<&~$" if is_escaped else ""
        table = {ord(one): f"\\{one}" for one in special}
        for meant, how in self.source:
            is_reference = how.startswith("&")
            is_plain = meant.isascii() and (meant.isalnum() or meant.isspace())
            if len(meant) == 1 and (meant in _OFTEN_ESCAPED or (is_reference and not is_plain)):
                table[ord(meant)] = how
        if self.place.is_label:
            table |= {ord(one): f"\\{one}" for one in "\\[]`<"}
        return table


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """One way of writing a translation."""

    said: str
    signs: Mapping[str, Sign]
    notation: Mapping[str, str]
    is_escaped: bool = False

    @property
    def has_codes(self) -> bool:
        return ANY_CODE.search(self.said) is not None

    @property
    def has_emphasis(self) -> bool:
        return any(self._mark(one) for one in self.said)

    def written(self, table: Mapping[int, str], place: Place) -> str:
        """Its notation, with characters written as a table says."""
        parts: list[str] = []
        done = 0
        for found in [*ANY_CODE.finditer(self.said), None]:
            text = self.said[done : found.start() if found else None]
            written = self._escaped(text, table, place)
            notation = self.notation.get(found[0], "") if found is not None else ""
            if self.is_escaped and text.endswith("!") and notation.startswith("["):
                written = written.removesuffix("!") + r"\!"
            parts += [written, notation]
            done = found.end() if found is not None else len(self.said)
        return "".join(parts)

    def _escaped(self, text: str, table: Mapping[int, str], place: Place) -> str:
        is_odd = text.endswith("\\") and not text.endswith("\\\\") and not self.is_escaped
        bare = text[:-1] if is_odd else text
        return place.kept(bare.translate(table) + (r"\\" if is_odd else ""))  # it escapes nothing

    def expected(self) -> Iterator[tuple[PartKind, str]]:
        """What a reader of the page should get."""
        for one in re.split(f"({ANY_CODE.pattern})", self.said):
            if not ANY_CODE.fullmatch(one):
                yield "text", one
            elif one in self.signs:
                yield from self.signs[one].said

    def with_spaces_outside(self) -> "_Draft":
        """Spaces at the edges of emphasis before and behind it; what has nothing in it, gone."""
        said = self.said
        while (cleaned := self._without_empty(said)) != said:
            said = cleaned
        opening, closing = self._class(is_opening=True), self._class(is_opening=False)
        said = re.sub(rf"({opening}+)(\s+)", r"\2\1", said)
        return replace(self, said=re.sub(rf"(\s+)({closing}+)", r"\2\1", said))

    def _without_empty(self, said: str) -> str:
        for start, end in partners(said).items():
            if start < end and self._mark(said[start]) and not said[start + 1 : end].strip():
                return said[:start] + said[start + 1 : end] + said[end + 1 :]
        return said

    def with_links_outside(self) -> "_Draft":
        """Emphasis around nothing but a link inside of it, where a letter is beside it."""
        said = self.said
        for _ in range(len(said)):
            pairs = partners(said)
            for start, end in pairs.items():
                is_around = start < end and pairs.get(start + 1) == end - 1
                if not is_around or not self._mark(said[start]) or self._mark(said[start + 1]):
                    continue
                if _is_letter(said[start - 1 : start]) or _is_letter(said[end + 1 : end + 2]):
                    said = (
                        f"{said[:start]}{said[start + 1]}{said[start]}{said[start + 2 : end - 1]}"
                        f"{said[end]}{said[end - 1]}{said[end + 1 :]}"
                    )
                    break
            else:
                break
        return replace(self, said=said)

    def with_punctuation_outside(self) -> "_Draft":
        """Punctuation before and behind emphasis, where it would not open or close otherwise."""
        opening, closing = self._class(is_opening=True), self._class(is_opening=False)
        said = self.said
        for found in reversed(list(re.finditer(rf"{opening}+", said))):
            rest = said[found.end() :]
            moved = rest[: _num_punctuation(rest)]
            has_more = not re.match(closing, rest[len(moved) :])
            if moved and has_more and _is_letter(said[: found.start()][-1:]):
                said = said[: found.start()] + moved + found[0] + rest[len(moved) :]
        for found in reversed(list(re.finditer(rf"{closing}+", said))):
            before = said[: found.start()]
            num = _num_punctuation(before[::-1])
            before, moved = before[: len(before) - num], before[len(before) - num :]
            has_more = not re.match(opening, before[-1:])
            if moved and has_more and _is_letter(said[found.end() : found.end() + 1]):
                said = before + found[0] + moved + said[found.end() :]
        return replace(self, said=said)

    def with_stars(self) -> "_Draft":
        """Emphasis beside letters with the sign that may stand inside of a word."""
        signs, notation = dict(self.signs), dict(self.notation)
        for start, end in partners(self.said).items():
            if start > end or "_" not in self._mark(self.said[start]):
                continue
            before, after = self.said[:start][-1:], self.said[end + 1 : end + 2]
            if _is_letter(before) or _is_letter(after):
                for one in (self.said[start], self.said[end]):
                    mark = self._mark(one).replace("_", "*")
                    signs[one], notation[one] = replace(signs[one], mark=mark), mark
        return replace(self, signs=signs, notation=notation)

    def with_spaces_beside(self) -> "_Draft":
        """A space where emphasis would not open otherwise, and where codes would be one."""
        opening, closing = self._class(is_opening=True), self._class(is_opening=False)
        said = self._with_spaces_after_codes()
        said = re.sub(rf"({closing})(?={opening})", r"\1 ", said)
        said = re.sub(rf"(?<=\w)({opening}+)(?=[^\w\s])", r" \1", said)
        return replace(self, said=re.sub(rf"([^\w\s])({closing}+)(?=\w)", r"\1\2 ", said))

    def _with_spaces_after_codes(self) -> str:
        parts: list[str] = []
        before = ""
        for one in self.said:
            written = self.notation.get(one, one)
            is_more = before.endswith("]") and written.startswith(("[", "("))
            is_more |= before.endswith("`") and written.startswith("`")
            parts.append(f" {one}" if is_more else one)
            before = self.notation.get(one, "")
        return "".join(parts)

    def with_tags(self) -> "_Draft":
        """Emphasis as HTML."""
        signs, notation = dict(self.signs), dict(self.notation)
        for start, end in partners(self.said).items():
            mark = self._mark(self.said[start])
            if mark and start < end:
                name = _ELEMENTS[mark]
                for one, tag in ((self.said[start], f"<{name}>"), (self.said[end], f"</{name}>")):
                    kind = signs[one].said[0][0]
                    signs[one] = Sign(said=((kind, f"html_inline {tag}"),))
                    notation[one] = tag
        return replace(self, signs=signs, notation=notation)

    def _mark(self, one: str) -> str:
        return self.signs[one].mark if one in self.signs else ""

    def _class(self, *, is_opening: bool) -> str:
        """Pattern of the codes that open, or close, emphasis."""
        found = [
            self.said[place]
            for place, other in partners(self.said).items()
            if (place < other) == is_opening and self._mark(self.said[place])
        ]
        return f"[{''.join(found)}]" if found else r"(?!)"


def _num_punctuation(text: str) -> int:
    """How many signs a text begins with."""
    return next((n for n, one in enumerate(text) if not _is_punctuation(one)), len(text))


def _is_punctuation(one: str) -> bool:
    return unicodedata.category(one)[0] in "PS" and not ANY_CODE.match(one)


def _is_letter(one: str) -> bool:
    """Whether a character is neither space nor a sign, beside which emphasis may not open."""
    return bool(one.strip()) and not ANY_CODE.match(one) and not _is_punctuation(one)
