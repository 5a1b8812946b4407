"""Limits of a document: what is refused before it costs anything.

Owns the numbers and the refusals that all formats share. What is wrong with a document of one
format is that format's.
"""

from dataclasses import dataclass

from model.errors import DocumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentLimits:
    """The most that is read of one document.

    Attributes:
        max_bytes: Size of the file.
        max_unpacked_bytes: All members of an archive together, whatever its directory says.
        max_read_bytes: Its members with texts together, which are in memory at once.
        max_members: Members of an archive.
        max_depth: Elements inside each other.
        max_events: Tags, and stretches of text between them, of one file of XML or HTML.
        max_texts: Texts to translate.
    """

    max_bytes: int = 64 * 1024 * 1024
    max_unpacked_bytes: int = 256 * 1024 * 1024
    max_read_bytes: int = 64 * 1024 * 1024
    max_members: int = 10_000
    max_depth: int = 1_000
    max_events: int = 1_000_000
    max_texts: int = 500_000


def check_size(kind: str, num_bytes: int, limits: DocumentLimits) -> None:
    """Refuse a file that is too large."""
    if num_bytes > limits.max_bytes:
        raise DocumentError(kind, f"has {num_bytes} bytes; at most {limits.max_bytes} are read")


def check_read(kind: str, num_bytes: int, limits: DocumentLimits) -> None:
    """Refuse an archive whose parts with texts are too large."""
    if num_bytes > limits.max_read_bytes:
        raise DocumentError(
            kind, f"has {num_bytes} bytes of XML; at most {limits.max_read_bytes} are read"
        )


def check_events(kind: str, num_events: int, limits: DocumentLimits) -> None:
    """Refuse a file of more tags and texts than are held in memory."""
    if num_events > limits.max_events:
        raise DocumentError(
            kind, f"has more than {limits.max_events} tags and stretches of text, the limit"
        )
