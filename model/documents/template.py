"""Templates: a document as what stays, letter by letter, with texts between that are replaced.

Owns how texts and their inline codes are noted down while a document is read, and how translations
take their places. What stays is never parsed again nor written anew, so no format loses what it
does not know. What is text, and how it is escaped, is for the formats to say.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from model.documents.limits import DocumentLimits
from model.errors import DocumentError, InputError
from model.text.inline_codes import (
    ANY_CODE,
    CODES_PER_CLASS,
    CodeClass,
    class_of,
    code,
    is_loose,
    without_codes,
)

Escape = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The place of a text.

    Attributes:
        index: Which text.
        original: What stands there in the source.
        codes: What each inline code of the text stands for.
        escape: Notation of characters that are text.
        is_source: The original is the text itself, and not an empty place for its translation.
    """

    index: int
    original: tuple["Piece", ...]
    codes: Mapping[str, tuple["Piece", ...]]
    escape: Escape
    is_source: bool = True


Piece = str | Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A document's notation with places for its texts.

    Attributes:
        pieces: In order.
        texts: What is to be translated, with inline codes.
    """

    pieces: tuple[Piece, ...]
    texts: tuple[str, ...]

    def rebuilt(self, translations: Sequence[str]) -> str:
        """The notation with translations instead of the texts.

        A text that comes back as it was is written as it was, byte for byte. A translation that is
        blank, or has other inline codes than its text, is not let into the structure: of a blank
        one the source stays, and codes are put right (`with_codes_of`).

        Args:
            translations: One for each of `texts`, in order.

        Raises:
            InputError: There are more or fewer.
        """
        check_number(self.texts, translations)
        return "".join(self._written(self.pieces, translations))

    def _written(
        self, pieces: Sequence[Piece], translations: Sequence[str]
    ) -> Iterator[str]:
        for piece in pieces:
            if isinstance(piece, str):
                yield piece
                continue
            source, translation = self.texts[piece.index], translations[piece.index]
            is_blank = not without_codes(translation).strip()
            is_same = piece.is_source and translation == source
            if is_same or (is_blank and without_codes(source).strip()):
                yield from self._written(piece.original, translations)
                continue
            yield from self._translated(piece, with_codes_of(source, translation), translations)

    def _translated(
        self, slot: Slot, translation: str, translations: Sequence[str]
    ) -> Iterator[str]:
        done = 0
        for found in ANY_CODE.finditer(translation):
            yield slot.escape(translation[done : found.start()])
            yield from self._written(slot.codes[found[0]], translations)
            done = found.end()
        yield slot.escape(translation[done:])


def check_number(texts: Sequence[str], translations: Sequence[str]) -> None:
    """Refuse translations that are not as many as the texts."""
    if len(translations) != len(texts):
        raise InputError(
            f"the document has {len(texts)} texts, not {len(translations)}",
            value=len(translations),
            limit=len(texts),
        )


def with_codes_of(source: str, translation: str) -> str:
    """A translation with the inline codes of its source, each once, so that no tag is another's.

    Loose codes are in the order of the source. A code that is a word may move in its sentence, but
    not into or out of an element; one that did is put at the beginning of its own. The text path
    loses no code and moves no loose one. What another translator did to them is put right roughly:
    codes that begin the source begin the translation, all others end it.
    """
    wanted, found = ANY_CODE.findall(source), ANY_CODE.findall(translation)
    if Counter(wanted) == Counter(found) and _loose(wanted) == _loose(found):
        return _in_own_elements(source, translation)
    text = without_codes(source)
    first = source.find(text.strip()[:1]) if text.strip() else len(source)
    leading = "".join(ANY_CODE.findall(source[:first]))
    return leading + without_codes(translation) + "".join(wanted[len(leading) :])


def _loose(codes: Sequence[str]) -> list[str]:
    return [one for one in codes if is_loose(one)]


def _in_own_elements(source: str, translation: str) -> str:
    """A translation whose words that are codes are inside the elements that they were in."""
    elements, moved = _elements(source), _elements(translation)
    for word, (opened, before) in elements.items():
        if moved[word][0] == opened:
            continue
        text = translation.replace(word, "")
        place = text.index(before) + 1 if before else 0
        needs_space = text[place : place + 1].isalnum()
        translation = text[:place] + word + " " * needs_space + text[place:]
    return translation


def _elements(text: str) -> dict[str, tuple[tuple[str, ...], str]]:
    """For every code that is a word the opening codes around it, and the loose one before it."""
    opened: list[str] = []
    found: dict[str, tuple[tuple[str, ...], str]] = {}
    before = ""
    for one in ANY_CODE.findall(text):
        if not is_loose(one):
            found[one] = (tuple(opened), before)
            continue
        before = one
        match class_of(one):
            case "opening":
                opened.append(one)
            case "closing":
                del opened[-1:]
    return found


@dataclass(slots=True, kw_only=True)
class TemplateBuilder:
    """What is noted down while a document is read.

    Attributes:
        kind: The kind of document, for its errors.
        limits: What is refused.
        kept: Texts that are not to be translated.
        pieces: What was read so far.
        texts: Texts so far.
    """

    kind: str
    limits: DocumentLimits
    kept: frozenset[str] = frozenset()
    pieces: list[Piece] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def slot(
        self,
        text: str,
        original: Sequence[Piece],
        codes: Mapping[str, tuple[Piece, ...]],
        escape: Escape,
        *,
        is_source: bool = True,
    ) -> Slot:
        """A place for one more text; it still has to be put among the pieces."""
        if len(self.texts) >= self.limits.max_texts:
            raise DocumentError(
                self.kind, f"has more than {self.limits.max_texts} texts, which is the limit"
            )
        self.texts.append(text)
        return Slot(
            index=len(self.texts) - 1,
            original=tuple(original),
            codes=codes,
            escape=escape,
            is_source=is_source,
        )

    def plain(
        self, text: str, original: str, escape: Escape, *, is_source: bool = True
    ) -> Piece:
        """A place for a text that has no inline codes, or its source if it has nothing to say.

        Args:
            text: What it means.
            original: How it is written.
            escape: Notation of its translation.
            is_source: Whether that is the text, and not an empty place for its translation.
        """
        if not any(map(str.isalpha, text)) or ANY_CODE.search(text):
            return original
        return self.slot(text, (original,), {}, escape, is_source=is_source)

    def template(self) -> Template:
        """What was noted down."""
        return Template(pieces=tuple(self.pieces), texts=tuple(self.texts))


class CodeTable:
    """The inline codes of one text, while it is put together."""

    def __init__(self) -> None:
        self.pieces: dict[str, tuple[Piece, ...]] = {}
        self._counts: Counter[CodeClass] = Counter()

    @property
    def is_full(self) -> bool:
        """Whether there may be no more code of some class."""
        return any(number >= CODES_PER_CLASS for number in self._counts.values())

    def added(self, code_class: CodeClass, pieces: Sequence[Piece]) -> str:
        """The code that now stands for something."""
        made = code(code_class, self._counts[code_class])
        self._counts[code_class] += 1
        self.pieces[made] = tuple(pieces)
        return made
