"""Models in words: what is shown of one before it is downloaded, and lists of several.

Owns the layout of these texts alone. What strangers wrote is cut to one line each.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from model.errors import one_line

if TYPE_CHECKING:
    from model.exchange.registry.listing import Listing, Offer, Score

_MAX_LANGUAGES = 12
_MAX_CELL = 60
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def human_bytes(num_bytes: int) -> str:
    """A number of bytes for people."""
    size, unit = float(num_bytes), 0
    while size >= 1024.0 and unit < len(_UNITS) - 1:
        size, unit = size / 1024.0, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit < 2 else f"{size:.1f} {_UNITS[unit]}"


def described(listing: "Listing") -> str:
    """A model's card: a line each for what a person decides by."""
    size = listing.known_bytes
    files = "1 file" if len(listing.files) == 1 else f"{len(listing.files)} files"
    rows = [
        ("model", listing.name),
        ("from", f"{listing.registry}, {listing.description}"),
        ("page", listing.url),
        ("version", listing.version),
        ("licence", listing.licence or "not stated; look at its page"),
        ("languages", directions(listing.pairs) or _several(listing.languages) or "see its page"),
        ("size", f"{human_bytes(size) if size else 'not stated'} in {files}"),
        ("scores", "; ".join(map(scored, listing.scores)) or "none published"),
    ]
    return "\n".join(f"{name + ':':<11}{one_line(text)}" for name, text in rows if text)


def scored(score: "Score") -> str:
    """A score with its test set: "BLEU 41.4 (FLORES, de-en)"."""
    where = ", ".join(part for part in (score.test_set, score.pair) if part)
    return f"{score.metric} {score.value:.6g}" + (f" ({where})" if where else "")


def directions(pairs: Sequence[tuple[str, str]]) -> str:
    """Directions, or how many where they are too many to be read."""
    if len(pairs) <= _MAX_LANGUAGES:
        return ", ".join(f"{source} → {target}" for source, target in pairs)
    num_languages = len({tag for pair in pairs for tag in pair})
    return f"{len(pairs)} directions between {num_languages} languages"


def offer_rows(offers: Sequence["Offer"]) -> list[tuple[str, ...]]:
    """Rows of a table, the heads first."""
    rows: list[tuple[str, ...]] = [("NAME", "DIRECTIONS", "LICENCE", "SIZE", "SCORE", "NOTE")]
    for offer in offers:
        size = "" if offer.size is None else human_bytes(offer.size)
        score = "" if offer.score is None else scored(offer.score)
        what = directions(offer.pairs) or "several"
        rows.append((offer.name, what, offer.licence or "?", size, score, offer.note))
    return rows


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; the last one is not padded."""
    cells = [[one_line(cell, max_characters=_MAX_CELL) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def _several(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MAX_LANGUAGES])
    more = len(names) - _MAX_LANGUAGES
    return f"{shown} and {more} more" if more > 0 else shown
