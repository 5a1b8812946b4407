"""A document as texts to translate and the bytes around them: what all formats are read as.

Owns the type and the options. How a format is read is its own file's; which file that is,
`model.documents.formats`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from model.documents.notation.template import Template


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOptions:
    """Options of a caller.

    Attributes:
        ignored_elements: Names of elements (HTML, XML) that are copied with all that is in them.
        splitting_elements: Names of elements that no sentence goes across.
        inline_elements: Names of elements that are inside a sentence, whatever they are elsewhere.
        has_outline: In XML, elements whose parents have no text of their own are borders of
            sentences too; otherwise only `splitting_elements` are.
    """

    ignored_elements: frozenset[str] = frozenset()
    splitting_elements: frozenset[str] = frozenset()
    inline_elements: frozenset[str] = frozenset()
    has_outline: bool = True


class Rebuild(Protocol):
    """What makes the bytes of a translated document."""

    def __call__(self, translations: Sequence[str], language: str | None = None) -> bytes:
        """The document with translations.

        Args:
            translations: One for each of its texts.
            language: Tag of theirs, which it says where it says its own; None changes nothing.

        Raises:
            InputError: There are more or fewer.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document that was read.

    Attributes:
        kind: Its kind, one of `model.documents.formats.KINDS`.
        texts: What is to be translated, in order. They may have inline codes
            (`model.text.marks.inline_codes`), which the text path carries.
        rebuild: From one translation for each of the texts to the bytes of the translated document.
    """

    kind: str
    texts: tuple[str, ...]
    rebuild: Rebuild


def document_of(kind: str, template: Template, encode: Callable[[str], bytes]) -> Document:
    """A document that is one template, written as bytes."""

    def rebuild(translations: Sequence[str], language: str | None = None) -> bytes:
        return encode(template.rebuilt(translations, language if template.texts else None))

    return Document(kind=kind, texts=template.texts, rebuild=rebuild)
