"""Templates: a document as what stays, letter by letter, with texts between that are replaced.

Owns how texts and their inline codes are noted down while a document is read, and how translations
take their places. What stays is never parsed again nor written anew, so no format loses what it
does not know. What is text, and how it is escaped, is for the formats to say.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from model.documents.notation.limits import DocumentLimits
from model.documents.notation.own_codes import cut_to, with_codes_of
from model.errors import DocumentError, InputError
from model.text.marks.inline_codes import (
    ANY_CODE,
    CODES_APART,
    CodeClass,
    class_of,
    code,
    without_codes,
)

Escape = Callable[[str], str]
Compose = Callable[[str, Mapping[str, str]], str]
"""From a translation with inline codes, and what each code stands for, to its notation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Notation that stands around each stretch of text of one formatting, where formats need it."""

    begin: tuple["Piece", ...] = ()
    end: tuple["Piece", ...] = ()

    def around(self, written: str) -> tuple["Piece", ...]:
        """A stretch with it; what is empty needs none."""
        return (*self.begin, written, *self.end) if written else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """What stands around the stretches of a translation.

    Attributes:
        outer: Around those that are in no element of the text.
        inner: Around those directly in an element, by its opening code.
        lead: Before the first of them.
        tail: Behind the last.
    """

    outer: Frame = field(default_factory=Frame)
    inner: Mapping[str, Frame] = field(default_factory=dict)
    lead: tuple["Piece", ...] = ()
    tail: tuple["Piece", ...] = ()

    @property
    def pieces(self) -> list["Piece"]:
        """All of them."""
        frames = (self.outer, *self.inner.values())
        around = chain.from_iterable((*frame.begin, *frame.end) for frame in frames)
        return [*self.lead, *around, *self.tail]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The place of a text.

    Attributes:
        index: Which text.
        original: What stands there in the source.
        codes: What each inline code of the text stands for.
        escape: Notation of characters that are text.
        layout: What is done with all of a translation, once it is written.
        frames: What stands around stretches of its text.
        most: Of a translation's characters, as UTF-16 counts them; what is more is cut off.
        is_source: The original is the text itself, and not an empty place for its translation.
        compose: Notation of all of a translation, where that of a character depends on what stands
            beside it; instead of `escape`.
    """

    index: int
    original: tuple["Piece", ...]
    codes: Mapping[str, tuple["Piece", ...]]
    escape: Escape
    layout: Escape = str
    frames: Frames = field(default_factory=Frames)
    most: int | None = None
    is_source: bool = True
    compose: Compose | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguagePlace:
    """The place where a document says its language.

    Attributes:
        original: What stands there.
        written: From a tag (BCP 47) to how it is written there.
    """

    original: str
    written: Escape = str

    def said(self, language: str | None) -> str:
        """What stands there of a translation; a region or script of the same language may stay."""
        if language is None or _primary(self.original) == _primary(language):
            return self.original
        return self.written(language)


Piece = str | Slot | LanguagePlace


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A document's notation with places for its texts.

    Attributes:
        pieces: In order.
        texts: What is to be translated, with inline codes.
    """

    pieces: tuple[Piece, ...]
    texts: tuple[str, ...]

    def rebuilt(self, translations: Sequence[str], language: str | None = None) -> str:
        """The notation with translations instead of the texts.

        A text that comes back as it was is written as it was, byte for byte. A translation that is
        blank, or has other inline codes than its text, is not let into the structure: of a blank
        one the source stays, and codes are put right (`with_codes_of`).

        Args:
            translations: One for each of `texts`, in order.
            language: Tag of theirs, said where the document says its own; None changes nothing.

        Raises:
            InputError: There are more or fewer.
        """
        check_number(self.texts, translations)
        return "".join(self._written(self.pieces, translations, language))

    @property
    def says_language(self) -> bool:
        """Whether it says its language anywhere."""
        return any(isinstance(piece, LanguagePlace) for piece in self.pieces)

    @property
    def slots(self) -> dict[int, Slot]:
        """The place of every text, by its index."""
        found: dict[int, Slot] = {}
        waiting = list(self.pieces)
        while waiting:
            piece = waiting.pop()
            if isinstance(piece, Slot):
                found[piece.index] = piece
                waiting += [*piece.original, *chain.from_iterable(piece.codes.values())]
                waiting += piece.frames.pieces
        return found

    def written(self, slot: Slot, stretch: str, translations: Sequence[str]) -> str:
        """A stretch of a text, or of its translation, as it is in the notation.

        Args:
            slot: The place of the text.
            stretch: A part of it, with inline codes; what is no code of this text is left out.
            translations: Of all texts, or the texts themselves, for what stands inside of tags.
        """
        own = ANY_CODE.sub(lambda found: found[0] if found[0] in slot.codes else "", stretch)
        return "".join(self._translated(slot, own, translations))

    def _written(
        self, pieces: Sequence[Piece], translations: Sequence[str], language: str | None = None
    ) -> Iterator[str]:
        for piece in pieces:
            if not isinstance(piece, Slot):
                yield piece if isinstance(piece, str) else piece.said(language)
                continue
            source, translation = self.texts[piece.index], translations[piece.index]
            is_blank = not without_codes(translation).strip()
            is_same = piece.is_source and translation == source
            if is_same or (is_blank and without_codes(source).strip()):
                yield from self._written(piece.original, translations)
                continue
            whole = with_codes_of(source, translation)
            said = whole if piece.most is None else cut_to(whole, piece.most)
            yield piece.layout("".join(self._translated(piece, said, translations)))

    def _translated(
        self, slot: Slot, translation: str, translations: Sequence[str]
    ) -> Iterator[str]:
        if slot.compose is not None:
            notation = {
                one: "".join(self._written(pieces, translations))
                for one, pieces in slot.codes.items()
            }
            yield slot.compose(translation, notation)
            return
        yield from self._written(list(_notation(slot, translation)), translations)


def _notation(slot: Slot, translation: str) -> Iterator[Piece]:
    """A translation as the notation of its stretches and of its codes."""
    frames, done = slot.frames, 0
    around = [frames.outer]
    yield from frames.lead
    for found in ANY_CODE.finditer(translation):
        yield from around[-1].around(slot.escape(translation[done : found.start()]))
        yield from slot.codes[found[0]]
        done = found.end()
        match class_of(found[0]):
            case "opening":
                around.append(frames.inner.get(found[0], around[-1]))
            case "closing" if len(around) > 1:
                around.pop()
            case _:
                pass
    yield from around[-1].around(slot.escape(translation[done:]))
    yield from frames.tail


def _primary(tag: str) -> str:
    """The language of a tag, without script and region."""
    return tag.replace("_", "-").partition("-")[0].strip().lower()


def check_number(texts: Sequence[str], translations: Sequence[str]) -> None:
    """Refuse translations that are not as many as the texts."""
    if len(translations) != len(texts):
        raise InputError(
            f"the document has {len(texts)} texts, not {len(translations)}",
            value=len(translations),
            limit=len(texts),
        )


@dataclass(slots=True, kw_only=True)
class TemplateBuilder:
    """Template that grows while a document is read.

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
        layout: Escape = str,
        frames: Frames | None = None,
        most: int | None = None,
        is_source: bool = True,
        compose: Compose | None = None,
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
            layout=layout,
            frames=frames or Frames(),
            most=most,
            is_source=is_source,
            compose=compose,
        )

    def plain(self, text: str, original: str, escape: Escape, *, is_source: bool = True) -> Piece:
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

    def added(
        self, code_class: CodeClass, pieces: Sequence[Piece], *, is_apart: bool = False
    ) -> str:
        """The code that now stands for something; a lone one may be seen between two words."""
        first = CODES_APART if is_apart and code_class == "lone" else 0
        made = code(code_class, first + self._counts[code_class])
        self._counts[code_class] += 1
        self.pieces[made] = tuple(pieces)
        return made
