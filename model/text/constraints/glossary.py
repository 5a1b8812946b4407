"""Glossaries: where a text has terms, what stands for them, and whether a translation has that.

Owns the entries, the search for their sources in a text and for their targets in a translation. A
term is a whole word or several; scripts that are written without spaces have no words, and there
any characters are. It is exact: an inflected form is no term. How a term comes through a network is
`model.text.drafts.tries` and `model.text.marks.carrying`: terms are marks that something else
stands for.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from model.text.languages.scripts import is_one_word
from model.text.marks.finding import Mark

MAX_ENTRIES = 500
MAX_TERM_CHARACTERS = 200

_JOINING = "_"
"""What is of a word beside letters and digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Entry of a glossary: a term, and what it has to be translated as.

    Attributes:
        source: The term; not empty, without space at its ends.
        target: What stands for it, likewise.
        is_case_sensitive: Found only as it is written, and put as it is written. Otherwise a term
            in capitals, or with a first one, gives its target that.
    """

    source: str
    target: str
    is_case_sensitive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A term in a stretch of text.

    Attributes:
        start: Where it begins, in characters.
        end: Where it ends.
        target: What has to stand for it, in its casing.
        is_case_sensitive: Whether another casing would be wrong.
    """

    start: int
    end: int
    target: str
    is_case_sensitive: bool

    @property
    def mark(self) -> Mark:
        """It as a mark."""
        return Mark(start=self.start, end=self.end, kind="term", replacement=self.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class TermUse:
    """A term of a translated segment.

    Attributes:
        source: As the text has it.
        target: What has to stand for it.
        is_hit: Whether that is in the translation, once for each.
    """

    source: str
    target: str
    is_hit: bool


class Glossary:
    """Entries, looked up by their first characters.

    Args:
        entries: Of equal sources the last one counts.
        is_carried: Terms are never left to the network, which writes another language.

    Attributes:
        entries: As given.
        is_carried: As given.
    """

    def __init__(self, entries: Sequence[Entry], *, is_carried: bool = False) -> None:
        self.entries = tuple(entries)
        self.is_carried = is_carried
        self._exact = {one.source: one for one in self.entries if one.is_case_sensitive}
        self._small = {_small(one.source): one for one in self.entries if not one.is_case_sensitive}
        self._known = frozenset(_small(one.source) for one in self.entries)
        lengths: dict[str, set[int]] = {}
        for one in self.entries:
            lengths.setdefault(_small(one.source[0]), set()).add(len(one.source))
        self._lengths = {key: sorted(own, reverse=True) for key, own in lengths.items()}

    def __repr__(self) -> str:
        return f"<Glossary of {len(self.entries)} entries>"

    def first_hop(self) -> "Glossary":
        """The same where a text goes into another language first: terms are carried there."""
        return Glossary(self.entries, is_carried=True)

    def hops(self) -> "tuple[Glossary, Glossary]":
        """Those of both hops."""
        return self.first_hop(), self.second_hop()

    def second_hop(self) -> "Glossary":
        """What finds the targets in the language between, and leaves them as they are."""
        targets = dict.fromkeys(one.target for one in self.entries)
        entries = [Entry(source=target, target=target) for target in targets]
        return Glossary(entries, is_carried=True)

    def find(self, text: str, marks: Sequence[Mark]) -> list[Term]:
        """The terms of a stretch of text, in order, the longest first where several begin.

        Args:
            text: A stretch.
            marks: Its marks, in order; a term does not reach into one.
        """
        terms: list[Term] = []
        small, known, done = _small(text), self._known, 0
        for begin, end in _gaps(text, marks):
            for start in range(begin, end):
                lengths = self._lengths.get(small[start], ())
                if start < done or not lengths or not _is_edge(text, start):
                    continue
                ends = [start + n for n in lengths if small[start : start + n] in known]
                term = self._term_at(text, start, [place for place in ends if place <= end])
                if term is not None:
                    terms.append(term)
                    done = term.end
        return terms

    def _term_at(self, text: str, start: int, ends: Sequence[int]) -> Term | None:
        """The first of the terms that may end at these places."""
        for end in ends:
            if not _is_edge(text, end):
                continue
            found = text[start:end]
            entry = self._exact.get(found) or self._small.get(_small(found))
            if entry is not None:
                return Term(
                    start=start,
                    end=end,
                    target=_in_casing(entry, found),
                    is_case_sensitive=entry.is_case_sensitive,
                )
        return None


class _Places:
    """Places of a translation, each of which serves one term.

    What was passed over for a target stays so: a later search for it goes on where the last ended.
    """

    def __init__(self, text: str) -> None:
        self._exact, self._small = text, _small(text)
        in_words = {one for one in set(text) if is_one_word(one, one, joining=_JOINING)}
        self._in_words = bytes(one in in_words for one in text)
        self._taken = bytearray(len(text))
        self._done: dict[tuple[str, bool], int] = {}

    def take(self, target: str, *, is_case_sensitive: bool) -> bool:
        """Whether a target is anywhere as whole words that serve no other term; now they do."""
        text = self._exact if is_case_sensitive else self._small
        target = target if is_case_sensitive else _small(target)
        key = target, is_case_sensitive
        start = text.find(target, self._done.get(key, 0))
        while start >= 0:
            end = start + len(target)
            if not _is_edge(text, start):
                following = self._in_words.find(0, start)  # the end of the word that it is in
                start = text.find(target, following) if following >= 0 else -1
            elif _is_edge(text, end) and 1 not in self._taken[start:end]:
                self._taken[start:end] = b"\1" * len(target)
                self._done[key] = end
                return True
            else:
                start = text.find(target, start + 1)
        self._done[key] = len(text)
        return False


def inside(terms: Sequence[Term], start: int, end: int) -> tuple[Term, ...]:
    """The terms of a stretch, which are in order, with places counted from its beginning."""
    low, high = (bisect_left(terms, place, key=lambda term: term.start) for place in (start, end))
    return tuple(
        replace(term, start=term.start - start, end=term.end - start)
        for term in terms[low:high]
        if term.end <= end
    )


def with_targets(text: str, marks: Sequence[Term] | Sequence[Mark]) -> str:
    """A stretch of text with what stands for its terms in their places."""
    if not marks:
        return text
    parts: list[str] = []
    done = 0
    for one in marks:
        target = one.target if isinstance(one, Term) else one.replacement
        parts += [text[done : one.start], text[one.start : one.end] if target is None else target]
        done = one.end
    return "".join([*parts, text[done:]])


def uses_of(terms: Sequence[Term], source: str, translation: str) -> tuple[TermUse, ...]:
    """Whether each term's target is in a translation; one place there serves one term.

    Args:
        terms: Of a segment.
        source: Its text.
        translation: Its translation.
    """
    if not terms:
        return ()
    places = _Places(translation)
    hits = set()
    for index in sorted(range(len(terms)), key=lambda index: -len(terms[index].target)):
        term = terms[index]
        if places.take(term.target, is_case_sensitive=term.is_case_sensitive):
            hits.add(index)
    return tuple(
        TermUse(source=source[term.start : term.end], target=term.target, is_hit=index in hits)
        for index, term in enumerate(terms)
    )


def _gaps(text: str, marks: Sequence[Mark]) -> Iterator[tuple[int, int]]:
    """What stands before, between and after marks."""
    done = 0
    for mark in marks:
        yield done, mark.start
        done = mark.end
    yield done, len(text)


def _is_edge(text: str, place: int) -> bool:
    """Whether a word may begin or end at a place."""
    return not 0 < place < len(text) or not is_one_word(
        text[place - 1], text[place], joining=_JOINING
    )


def _in_casing(entry: Entry, found: str) -> str:
    """The target of a term that was found in some casing."""
    source, target = entry.source, entry.target
    if entry.is_case_sensitive or found == source:
        return target
    if len(found) > 1 and found.isupper() and not source.isupper():
        return target.upper()
    capital = target[0].upper()
    if found[0].isupper() and source[0].islower() and len(capital) == 1:
        return capital + target[1:]
    return target


def _small(text: str) -> str:
    """A text in small letters, as long as it is."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
