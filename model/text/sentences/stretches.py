"""Stretches of a text: its sentences, without what stands around them and is no language.

Owns where a sentence's language begins and ends, among marks at its edges. Sentences are
`model.text.sentences.segmenter`'s, marks `model.text.marks.finding`'s; what becomes of a stretch is
`model.text.drafts.tries`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from model.text.languages.tags import LanguagePair
from model.text.marks.finding import EDGE_KINDS, LOOSE_KINDS, Mark, masked
from model.text.marks.inline_codes import is_closing, is_loose, is_opening, outer_edges, partners
from model.text.sentences.segmenter import Span, sentence_spans

_BESIDE = " \t\u00a0"


def stretches(
    text: str, marks: Sequence[Mark], pair: LanguagePair
) -> Iterator[tuple[int, int, list[Mark]]]:
    """Sentences without what stands around them and is no language, and the marks inside.

    The marks' places are counted from the beginning of the sentence.
    """
    if not marks:
        for start, end in sentence_spans(text, pair.source):
            yield start, end, []
        return
    later = iter(marks)
    mark = next(later, None)
    for start, end in _sentences(text, marks, pair.source):
        inside: list[Mark] = []
        while mark is not None and mark.start < end:
            if mark.end > start:
                inside.append(mark)
            mark = next(later, None)
        begin, own = start, list[Mark]()
        for one in inside:
            if one.kind in EDGE_KINDS:
                yield from _stripped(text, begin, one.start, own)
                begin, own = one.end, []
            else:
                own.append(one)
        yield from _stripped(text, begin, end, own)


def _sentences(text: str, marks: Sequence[Mark], language: str) -> Iterator[Span]:
    """Sentences, found as if the inline codes of a document were not there.

    So a sentence may end before the end of what is printed in bold.
    """
    shown = masked(text, marks)
    if not any(is_loose(text[mark.start]) for mark in marks):
        yield from sentence_spans(shown, language)
        return
    kept = [place for place, character in enumerate(text) if not is_loose(character)]
    spans = sentence_spans("".join(shown[place] for place in kept), language)
    yield from _with_codes(text, [(kept[start], kept[end - 1] + 1) for start, end in spans])


def _with_codes(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """Sentences with the tags that begin right before them and end right behind them."""
    nexts = [start for start, _ in spans[1:]] + [len(text)] * bool(spans)
    done = 0
    for (start, end), following in zip(spans, nexts, strict=True):
        before = [start]
        for place in range(start - 1, done - 1, -1):
            if text[place] not in _BESIDE and not is_loose(text[place]):
                break
            if is_opening(text[place]):
                before.append(place)
        after = [end]
        for place in range(end, following):
            if text[place] not in _BESIDE and not is_loose(text[place]):
                break
            if is_closing(text[place]):
                after.append(place + 1)
        done = after[-1]
        yield before[-1], done


def _stripped(
    text: str, start: int, end: int, marks: Sequence[Mark]
) -> Iterator[tuple[int, int, list[Mark]]]:
    """A stretch without white space and loose marks at its ends, unless nothing is left.

    Inline codes at its ends that begin or end an element inside of it stay in it, and so do both
    ends of a link.
    """
    num_before, num_after = 0, 0
    edge = start
    for mark in marks:
        if not _is_loose(mark) or text[edge : mark.start].strip():
            break
        num_before, edge = num_before + 1, mark.end
    edge = end
    for mark in reversed(marks[num_before:]):
        if not _is_loose(mark) or text[mark.end : edge].strip():
            break
        num_after, edge = num_after + 1, mark.start
    texts = [text[mark.start : mark.end] for mark in marks]
    pairs = {**partners(texts), **_links(texts)}
    num_before, num_after = outer_edges(pairs, num_before, num_after, len(marks))
    own = marks[num_before : len(marks) - num_after]
    start = marks[num_before - 1].end if num_before else start
    end = marks[-num_after].start if num_after else end
    start, end = end - len(text[start:end].lstrip()), start + len(text[start:end].rstrip())
    if start < end:
        yield (
            start,
            end,
            [replace(mark, start=mark.start - start, end=mark.end - start) for mark in own],
        )


def _links(texts: Sequence[str]) -> dict[int, int]:
    """Places of marks that links begin with and of those that end them, both ways."""
    opened: int | None = None
    found: dict[int, int] = {}
    for place, one in enumerate(texts):
        if one in ("[", "!["):
            opened = place
        elif opened is not None and one.startswith(("](", "][")):
            found[opened], found[place] = place, opened
            opened = None
    return found


def _is_loose(mark: Mark) -> bool:
    return mark.kind in LOOSE_KINDS
