"""Media types of documents that are sent over HTTP, with the charset that a file really is in.

Owns which kinds say a charset: those of text, of which one that is not said would be guessed. How a
format says its encoding, its own reader knows.
"""

from model.documents.kinds import media_type
from model.documents.notation.encoding import charset_of_page, charset_of_text
from model.documents.plain_text.gettext_charset import charset_of_catalogue

HEAD_BYTES = 16 * 1024
"""Of a file, in which it says its encoding."""


def media_type_of_file(kind: str, head: bytes) -> str:
    """The media type of a file, with its charset if it is text.

    Args:
        kind: Of the document.
        head: Its first `HEAD_BYTES`.
    """
    plain = media_type(kind)
    if not plain.startswith("text/"):
        return plain
    match kind:
        case "html":
            charset = charset_of_page(head)
        case "po":
            charset = charset_of_catalogue(head)
        case _:
            charset = charset_of_text(head)
    return f"{plain}; charset={charset}"
