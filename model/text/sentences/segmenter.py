"""Sentence boundaries: spans of a text, found by rules in linear time.

Owns the split of a text into sentences, and the cut of a sentence that is too long for a
network. It answers with spans and never changes a character, so whatever lies between two
spans can be put back byte for byte. It does not know tokens: a cut asks its caller how long
a piece is.

Every pattern is a run of one character class after another, disjoint one, and every look
around has a fixed reach, so no input makes it slow.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import pairwise

from model.text.languages.tags import primary_language
from model.text.sentences.abbreviations import AbbreviationRules, abbreviation_rules

Span = tuple[int, int]

# Line breaks as `str.splitlines` knows them, and tabs: both end whatever stands before them.
LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\t"
# Not spaces to `str.isspace`, yet nothing to translate at the ends of a sentence.
_INVISIBLE = "\ufeff\u200b"
# These end a sentence whatever follows: the stops of Chinese and Japanese, Urdu and Arabic,
# Hindi, Burmese, Ethiopic, Khmer and Armenian.
_SURE_STOPS = "。！？｡．؟۔।॥။።។։"
_ELLIPSES = "…‥"
_BRACKETS = {")": "(", "]": "[", "）": "（", "］": "［", "》": "《", "〉": "〈", "】": "【"}
_QUOTES = "\"'’”›」』｣＂＇}｝"
# These close in German or French („Ja.“, »Ja.«, « Oui. ») and open elsewhere.
_EITHER_QUOTES = "“‘»«‹"
_BULLETS = "\"'“‘„‚«‹([{¿¡「『（《【-–—•*"
# Before these a sentence has not ended: “好！”，他说 and spaced ellipses (. . .).
_GOES_ON = f"，、；：､,;:.!?{_ELLIPSES}{_SURE_STOPS}"
_MAX_WORD = 16  # longer than any abbreviation or starter
_MAX_BRACKET_REACH = 200

_LINE = re.compile(f"[^{LINE_BREAKS}]+")
_CLOSERS = re.escape(_QUOTES + "".join(_BRACKETS))
_STOP = re.compile(
    f"([.!?{_ELLIPSES}{_SURE_STOPS}]+)"
    rf"((?:[{_CLOSERS}]|(?:[{_EITHER_QUOTES}]|[ \u00a0\u202f][»”’])(?=[\s,;:.]|\Z))*)"
)
_BLANK = re.compile(rf"[\s{_INVISIBLE}]*")
_SPACES = re.compile(r"\s*")
_OPENERS = re.compile(f"[{re.escape(_BULLETS)}]*")
_WORD = re.compile(r"[^\W\d_]*")
_LAST_WORD = re.compile(rf"[^\s{re.escape(_BULLETS.replace('-', ''))}]*\Z")

_CLAUSE_END = re.compile(rf"(?:[,;:.!?{_ELLIPSES}–—]+\s+|[，、；：､{_SURE_STOPS}]+)")
_SPACE_END = re.compile(r"\s+")


def sentence_spans(text: str, language: str) -> Iterator[Span]:
    """Find the sentences of a text.

    A line break or a tab always ends a sentence. Inside a line the stops do, unless what
    stands around them speaks against it: a lower-case letter after them, an abbreviation or
    an initial before a full stop, no space after it (3.14, example.org), a bracket that goes
    on. In doubt the sentence goes on.

    Args:
        text: Any text.
        language: BCP-47 tag; chooses the abbreviations.

    Yields:
        (start, end) in order, without overlap, not empty, without space at either end;
        between and around them there is only white space.
    """
    rules = abbreviation_rules(primary_language(language))
    for line in _LINE.finditer(text):
        begin, end = line.span()
        first = _first_word(text, begin, end)
        for stop in _STOP.finditer(text, begin, end):
            if _ends_sentence(text, first, stop, end, rules):
                yield from _trimmed(text, begin, stop.end())
                begin = stop.end()
                first = _first_word(text, begin, end)
        yield from _trimmed(text, begin, end)


def cut_spans(text: str, num_tokens: Callable[[str], int], max_tokens: int) -> list[Span]:
    """Cut a sentence into pieces that fit.

    The pieces are about equally long. A cut is made where a clause ends if that is near,
    else at a space, else between two characters, and then not before a combining one.

    Args:
        text: One sentence.
        num_tokens: How long a piece is; asked O(log n) times for every character.
        max_tokens: How long a piece may be. A piece of one character is kept even if it is
            longer.

    Returns:
        Spans as those of `sentence_spans`.
    """
    spans: list[Span] = []
    waiting = list(_trimmed(text, 0, len(text)))
    while waiting:
        start, end = waiting.pop()
        length = num_tokens(text[start:end])
        if length <= max_tokens or end - start == 1:
            spans.append((start, end))
            continue
        # A tenth of slack, as pieces that end at a clause are uneven.
        num_parts = min(length * 10 // (max_tokens * 9) + 1, end - start)
        cuts = [start, *_cuts(text, start, end, max(num_parts, 2)), end]
        parts = [span for low, high in pairwise(cuts) for span in _trimmed(text, low, high)]
        waiting.extend(reversed(parts))
    return spans


def _trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    """The span without white space at its ends, unless nothing is left."""
    while start < end and (text[start].isspace() or text[start] in _INVISIBLE):
        start += 1
    while start < end and (text[end - 1].isspace() or text[end - 1] in _INVISIBLE):
        end -= 1
    if start < end:
        yield start, end


def _first_word(text: str, begin: int, end: int) -> int:
    """Where a sentence's first word stands: after space, quotes, brackets and bullets."""
    return _end(_OPENERS, text, _end(_BLANK, text, begin, end), end)


def _ends_sentence(
    text: str, first: int, stop: re.Match[str], line_end: int, rules: AbbreviationRules
) -> bool:
    """Whether a run of stops, with its closing quotes and brackets, ends the sentence.

    Args:
        text: The whole text.
        first: Where the first word of the sentence stands.
        stop: A match of `_STOP`.
        line_end: Where the line ends.
        rules: Abbreviations of the language.
    """
    marks, closers = stop[1], stop[2]
    after = _end(_SPACES, text, stop.end(), line_end)
    if after == line_end:
        return True
    if text[after] in _GOES_ON or _is_inside(text, first, stop):
        return False
    if any(mark in _SURE_STOPS for mark in marks):
        return not (marks == "．" and text[after].isdigit())
    is_ellipsis = marks != "." and not marks.strip(f".{_ELLIPSES}")
    if after == stop.end():
        # No space: 3.14, example.org and 我……我, but also Chinese with ASCII stops.
        return not is_ellipsis and _is_wide(text[stop.start() - 1]) and _is_wide(text[after])
    next_start = _end(_OPENERS, text, after, line_end)
    if text[next_start : next_start + 1].islower():
        return False
    is_plain = marks == "." and not closers
    return not (is_plain and _takes_stop(text, first, stop.start(), next_start, rules))


def _is_inside(text: str, first: int, stop: re.Match[str]) -> bool:
    """Whether the stop belongs to a bracket that opened inside the sentence, as in 他（她？）来."""
    opener = next((_BRACKETS[closer] for closer in stop[2] if closer in _BRACKETS), None)
    if opener is None:
        return False
    return text.rfind(opener, max(first, stop.start() - _MAX_BRACKET_REACH), stop.start()) >= 0


def _takes_stop(
    text: str, first: int, stop: int, next_start: int, rules: AbbreviationRules
) -> bool:
    """Whether the word before a full stop takes it for itself: abbreviation, initial, ordinal.

    Args:
        text: The whole text.
        first: Where the first word of the sentence stands.
        stop: Where the full stop stands.
        next_start: Where the next word stands.
        rules: Abbreviations of the language.
    """
    whole = _word_before(text, first, stop)
    word = whole.rpartition("-")[2]  # of "Lt.-Col" the last part
    is_first = first + len(word) >= stop
    if word.isdigit():
        # "1. Introduction" numbers a line; "3. Oktober" is an ordinal.
        return (is_first and len(word) <= 3) or (rules.has_ordinal_dot and len(word) <= 2)
    folded = word.lower()
    if text[next_start : next_start + 1].isdigit() and folded in rules.before_number:
        return True
    is_initial = len(word) == 1 and word.isupper()
    is_closed = folded in rules.closed or whole.lower() in rules.closed  # "c.-à-d" is one word
    if is_closed or (is_initial and is_first):  # "A. First", an item of a list
        return True
    is_acronym = "." in word and all(part.isalpha() and len(part) <= 2 for part in word.split("."))
    may_end = is_initial or is_acronym or folded in rules.open
    return may_end and _next_word(text, next_start) not in rules.starters


def _word_before(text: str, first: int, stop: int) -> str:
    """The word that a full stop follows, cut to what an abbreviation can be."""
    match = _LAST_WORD.search(text, max(first, stop - _MAX_WORD), stop)
    return match[0] if match else ""


def _next_word(text: str, start: int) -> str:
    """The word at an offset in lower case, cut; empty for an initial such as the A of A. Smith."""
    end = _end(_WORD, text, start, start + _MAX_WORD)
    is_initial = end - start == 1 and text[end : end + 1] == "."
    return "" if is_initial else text[start:end].lower()


def _cuts(text: str, start: int, end: int, num_parts: int) -> Iterator[int]:
    """Where to cut a span into parts: rising offsets strictly inside it."""
    step = (end - start) / num_parts
    for index in range(1, num_parts):
        target = start + round(index * step)
        reach = int(step / 3)
        yield _best_cut(text, max(start + 1, target - reach), target, min(end - 1, target + reach))


def _best_cut(text: str, low: int, target: int, high: int) -> int:
    """The best offset in [low, high]: the nearest end of a clause, or space, or character."""
    for pattern in (_CLAUSE_END, _SPACE_END):
        found = [match.end() for match in pattern.finditer(text, low - 1, high)]
        inside = [offset for offset in found if offset >= low]
        if inside:
            return min(inside, key=lambda offset: abs(offset - target))
    free = (cut for cut in range(target, high + 1) if not _is_joined(text[cut - 1], text[cut]))
    return next(free, target)


def _is_joined(left: str, right: str) -> bool:
    """Whether two characters make one: combining marks, emoji sequences."""
    return "\u200d" in {left, right} or unicodedata.category(right).startswith("M")


def _is_wide(character: str) -> bool:
    """Whether it is Chinese or Japanese text, which has no spaces."""
    return unicodedata.east_asian_width(character) in {"W", "F"} and not ("가" <= character <= "힣")


def _end(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    """Where a pattern that also matches nothing stops."""
    match = pattern.match(text, start, end)
    return match.end() if match else start
