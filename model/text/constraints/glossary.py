"""Glossaries: where a text has terms, what stands for them, and whether a translation has that.

Owns the entries, the search for their sources in a text and for their targets in a translation. A
term is a whole word or several; scripts that are written without spaces have no words, and there
any characters are. It is exact: an inflected form is no term. How a term comes through a network is
`model.text.drafts.tries` and `model.text.marks.carrying`: terms are marks that something else
stands for.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from model.text.constraints.folding import Folded
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
    """Entries, looked up in a text's common spelling (`model.text.constraints.folding`).

    Args:
        entries: Of equal sources the last one counts; those that differ in casing alone are told
            apart by it.
        is_carried: Terms are never left to the network, which writes another language.

    Attributes:
        entries: As given.
        is_carried: As given.
    """

    def __init__(self, entries: Sequence[Entry], *, is_carried: bool = False) -> None:
        self.entries = tuple(entries)
        self.is_carried = is_carried
        exact, others = _by_casing(self.entries)
        self._exact, self._small = _Sources(exact), _Sources(others)

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
        folded, done = Folded(text), 0
        for begin, end in _gaps(text, marks):
            last = folded.behind(end)
            for start in range(folded.first(begin), last):
                found = self._found(folded, start, last) if start >= done else None
                if found is not None:
                    entry, done = found
                    terms.append(_term(entry, text, folded.span(start, done)))
        return terms

    def _found(self, folded: Folded, start: int, last: int) -> tuple[Entry, int] | None:
        """The longest entry that begins at a place, and where it ends; an exact one goes first."""
        exact = self._exact.longest(folded.text, start, last)
        small = self._small.longest(folded.small, start, last)
        if exact is None or small is None:
            return exact or small
        return small if small[1] > exact[1] else exact


def _by_casing(entries: Iterable[Entry]) -> tuple[dict[str, Entry], dict[str, Entry]]:
    """Entries that are found in their own casing alone, and those that are found in any.

    Of sources that differ in nothing else, the one in small letters is found in every casing that
    is not another's.
    """
    exact, others = dict[str, Entry](), dict[str, dict[str, Entry]]()
    for one in entries:
        source = Folded(one.source)
        if one.is_case_sensitive:
            exact[source.text] = one
        else:
            others.setdefault(source.small, {})[source.text] = one
    in_any = {}
    for small, casings in others.items():
        if len(casings) == 1:
            (in_any[small],) = casings.values()
            continue
        if small in casings:
            in_any[small] = casings.pop(small)
        exact |= {text: replace(one, is_case_sensitive=True) for text, one in casings.items()}
    return exact, in_any


class _Sources:
    """Sources of one casing.

    They are in order, so that the longest one at a place is found without a look at the others.

    Args:
        entries: By their sources.
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = {source: one for source, one in entries.items() if source}
        self._ordered = sorted(self._entries)
        self._longest: dict[str, int] = {}
        self._beginnings: list[tuple[int, ...]] = []  # lengths of those that each one begins with
        open_ones: list[str] = []
        for source in self._ordered:
            while open_ones and not source.startswith(open_ones[-1]):
                open_ones.pop()
            open_ones.append(source)
            self._beginnings.append(tuple(map(len, open_ones)))
            self._longest[source[0]] = max(self._longest.get(source[0], 0), len(source))

    def longest(self, text: str, start: int, last: int) -> tuple[Entry, int] | None:
        """The longest one that is at a place as whole words, and where it ends.

        Args:
            text: In their casing.
            start: The place.
            last: Where it has to have ended.
        """
        length = self._longest.get(text[start])
        if length is None or not _is_edge(text, start):
            return None
        stretch = text[start : min(start + length, last)]
        # What a text begins with is the next one before it in order, or a beginning of that.
        index = bisect_right(self._ordered, stretch) - 1
        if index < 0:
            return None
        lengths = self._beginnings[index]
        num_fitting = bisect_right(lengths, _num_common(stretch, self._ordered[index]))
        for length in reversed(lengths[:num_fitting]):
            if _is_edge(text, start + length):
                return self._entries[stretch[:length]], start + length
        return None


def _num_common(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _term(entry: Entry, text: str, span: tuple[int, int]) -> Term:
    start, end = span
    return Term(
        start=start,
        end=end,
        target=_in_casing(entry, text[start:end]),
        is_case_sensitive=entry.is_case_sensitive,
    )


class _Places:
    """Places of a translation, each of which serves one term.

    What was passed over for a target stays so: a later search for it goes on where the last ended.
    """

    def __init__(self, text: str) -> None:
        folded = Folded(text)
        self._exact, self._small = folded.text, folded.small
        text = folded.text
        in_words = {one for one in set(text) if is_one_word(one, one, joining=_JOINING)}
        self._in_words = bytes(one in in_words for one in text)
        self._taken = bytearray(len(text))
        self._done: dict[tuple[str, bool], int] = {}

    def take(self, target: str, *, is_case_sensitive: bool) -> bool:
        """Whether a target is anywhere as whole words that serve no other term; now they do."""
        text, folded = self._exact if is_case_sensitive else self._small, Folded(target)
        target = folded.text if is_case_sensitive else folded.small
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
    """The target of a term that was found in some casing; `iPhone` has one of its own."""
    source, target = entry.source, entry.target
    if entry.is_case_sensitive or found == source:
        return target
    if len(found) > 1 and found.isupper() and not source.isupper():
        return target.upper()
    capital, has_own = target[0].upper(), any(map(str.isupper, target.split(maxsplit=1)[0][1:]))
    if found[0].isupper() and source[0].islower() and len(capital) == 1 and not has_own:
        return capital + target[1:]
    return target
