"""Checks that the translation contracts share: amount of text, width of the search.

Owns the comparison of a request with the server's safe maxima. Every message names the value and
the limit, and a text by its length.
"""

from collections.abc import Sequence

from service.bounds import MAX_BEAM_SIZE
from service.errors import invalid, too_long
from service.settings import Settings

MAX_ALTERNATIVES = MAX_BEAM_SIZE - 1
MAX_TAG_NAMES = 100
"""Elements that a request may name for one purpose."""


def check_number(texts: Sequence[object], settings: Settings) -> None:
    """Refuse more texts than a request may have, before any of them is read.

    Raises:
        RequestError: A 413.
    """
    if len(texts) > settings.max_texts:
        raise too_long(
            f"the request has {len(texts)} texts; the limit is {settings.max_texts}",
            value=len(texts),
            limit=settings.max_texts,
        )


def check_texts(texts: Sequence[str], settings: Settings, *, has_tags: bool = False) -> int:
    """Characters of all texts, if that is acceptable.

    A text with tags may be as long as all of them together; what it says without its tags is
    compared with the limit of a text once it is read (`service.models.requests.markup`).

    Raises:
        RequestError: A 413.
    """
    check_number(texts, settings)
    lengths = [len(text) for text in texts]
    longest, total = max(lengths, default=0), sum(lengths)
    if not has_tags and longest > settings.max_text_characters:
        raise too_long(
            f"a text has {longest} characters; the limit is {settings.max_text_characters}",
            value=longest,
            limit=settings.max_text_characters,
        )
    if total > settings.max_request_characters:
        raise too_long(
            f"the texts have {total} characters; the limit is {settings.max_request_characters}",
            value=total,
            limit=settings.max_request_characters,
        )
    return total


def search_beam(beam_size: int, num_alternatives: int, settings: Settings) -> int:
    """The beam that finds the alternatives too: max(beam_size, num_alternatives + 1).

    Raises:
        RequestError: A 400: it would be wider than the server allows.
    """
    limit = settings.max_beam_size
    if beam_size > limit:
        raise invalid(
            f"beam_size is {beam_size}; it must be at most {limit}", value=beam_size, limit=limit
        )
    if not 0 <= num_alternatives < limit:
        raise invalid(
            f"alternatives is {num_alternatives}; it must be from 0 to {limit - 1}",
            value=num_alternatives,
            limit=limit - 1,
        )
    return max(beam_size, num_alternatives + 1)
