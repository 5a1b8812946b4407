"""Places of tokens in the text that they stand for.

Owns how the pieces of a segment are found again in its text, whatever the tokenizer has normalised,
and whatever was read or written in the place of marks. The pieces are
`model.text.subwords.tokenizer`'s.
"""

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, groupby

Span = tuple[int, int]

MAX_CHARACTERS = 2000
"""Of a text that is not what was read, letter by letter; a longer one is not compared."""
MAX_COMPARISONS = 500_000
"""Of characters of two texts, which could grow with the cube of their lengths."""

_BYTE_PIECE = re.compile("<0x[0-9A-F]{2}>")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSpans:
    """Spans of the tokens of a segment, in characters of its texts.

    Attributes:
        source: For every source token its beginning and end; None of one that stands for no text.
        target: The same for every target token.
    """

    source: tuple[Span | None, ...]
    target: tuple[Span | None, ...]


def token_spans(pieces: Sequence[str | None], text: str) -> tuple[Span | None, ...]:
    """Where each piece is in a text, in characters.

    A piece that is not found (of a mark's stand-in, of bytes, of what was normalised) has what
    stands between its neighbours, and shares it with others that are not.

    Args:
        pieces: In the order of the text; None stands for no text.
        text: What was cut into the pieces, or what they were joined to, as a caller sees it.
    """
    surfaces = ["" if piece is None else _surface(piece) for piece in pieces]
    places = [place for place, character in enumerate(text) if not character.isspace()]
    read, written = _folded("".join(surfaces)), _folded(text[place] for place in places)
    if max(len(read), len(written)) > MAX_CHARACTERS and read != written:
        return (None,) * len(pieces)
    found = _matches(read, written)
    ends = list(accumulate(map(len, surfaces)))
    spans: list[Span | None] = []
    for surface, end in zip(surfaces, ends, strict=True):
        own = found[end - len(surface) : end]
        known = [place for place in own if place is not None]
        is_whole = bool(known) and len(known) == len(own)
        spans.append((places[known[0]], places[known[-1]] + 1) if is_whole else None)
    return _filled(pieces, spans, text)


def _surface(piece: str) -> str:
    """What a piece adds to a text, but for spaces: the marks of word boundaries are no text."""
    if _BYTE_PIECE.fullmatch(piece):
        return ""
    return "".join(piece.replace("\u2581", " ").removesuffix("</w>").removesuffix("@@").split())


def _folded(characters: str | Iterator[str] | Sequence[str]) -> str:
    """Characters without their case, one for one."""
    return "".join(
        character.lower() if len(character.lower()) == 1 else character for character in characters
    )


def _matches(read: str, written: str) -> list[int | None]:
    """For every character that was read its place in what was written.

    Longest matches come first, then those before and behind them, within `MAX_COMPARISONS`.
    """
    if read == written:
        return list(range(len(read)))
    found: list[int | None] = [None] * len(read)
    matcher = SequenceMatcher(None, read, written, autojunk=False)
    numbers = Counter(written)
    costs = list(accumulate((1 + numbers[character] for character in read), initial=0))
    left = MAX_COMPARISONS
    waiting = deque([(0, len(read), 0, len(written))])
    while waiting:
        low, high, start, end = waiting.popleft()
        cost = costs[high] - costs[low]
        if low == high or start == end or cost > left:
            continue
        left -= cost
        block = matcher.find_longest_match(low, high, start, end)
        if block.size:
            behind, after = block.a + block.size, block.b + block.size
            found[block.a : behind] = range(block.b, after)
            waiting += [(low, block.a, start, block.b), (behind, high, after, end)]
    return found


def _filled(
    pieces: Sequence[str | None], spans: Sequence[Span | None], text: str
) -> tuple[Span | None, ...]:
    """The spans, with what is left between two of them for the pieces that have none."""
    filled: list[Span | None] = []
    low = 0
    tokens = range(len(pieces))
    for is_lost, group in groupby(tokens, lambda at: spans[at] is None and pieces[at] is not None):
        run = list(group)
        if not is_lost:
            filled += [spans[at] for at in run]
            low = max([low, *(span[1] for at in run if (span := spans[at]) is not None)])
            continue
        high = next((span[0] for span in spans[run[-1] + 1 :] if span is not None), len(text))
        gap = text[low:high]
        start = low + len(gap) - len(gap.lstrip())
        end = low + len(gap.rstrip())
        filled += [(start, end) if start < end else None] * len(run)
    return tuple(filled)
