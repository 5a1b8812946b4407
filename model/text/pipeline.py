"""Text pipeline: texts to segments (`prepare`), translations to texts (`finish`); no I/O.

Owns the order of the stages of the text path, and their rules. It does not find sentences
(`model.text.segmenter`) or marks (`model.text.marks`), does not make tokens
(`model.text.tokenizer`) and does not translate; two drivers do, `model.offline.translator` and
`service.models.translator`. They ask the network for what a `Draft` asks for, and have it reviewed,
until it asks for nothing: most texts are whole after one round.

The rules, all of them visible in the result:

- Every sentence is a segment of its own, always: networks are trained on sentences.
- What stands between segments (spaces, line breaks, tabs, bullets and other beginnings of lines,
  walls of tables, emoji and tags around a sentence) comes back byte for byte. One thing is added:
  where the source has no space between two sentences because its script has none (Chinese,
  Japanese, Thai …) and the target's script needs one, a space.
- A sentence that is too long for the network is cut, and its pieces say so (`is_cut`).
- A segment without any letter outside its marks is copied and never sent to the network: numbers,
  links, placeholders and blocks of code stay as they are.
- Marks inside a sentence are carried (`model.text.carrying`), verified, and carried in another way
  if they were lost. The last way is to split around them, and no way loses one.
- A sentence in capitals is translated in ordinary casing, and its translation is in capitals. No
  other casing is touched.
- What a check finds wrong is tried again in another way (`model.text.tries`), and if that does not
  help, said (`Quality`).
- Lone surrogates, which are no characters, become U+FFFD before anything else.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from model.config import LengthLimits
from model.text.carrying import Carried, Restored, restore
from model.text.checks import ALL_CHECKS, Compared, Quality, failed_checks
from model.text.inline_codes import is_closing, is_loose, is_opening, outer_edges, partners
from model.text.language import LanguagePair
from model.text.marks import EDGE_KINDS, LOOSE_KINDS, Mark, find_inner_marks, find_marks, masked
from model.text.rounds import Draft, Piece, best_of, started
from model.text.segmenter import LINE_BREAKS, Span, sentence_spans
from model.text.segments import (
    PreparedText,
    Segment,
    SegmentOutput,
    TranslatedSegment,
    Translation,
    copied,
    joined,
)
from model.text.tokenizer import Tokenizer
from model.text.tries import Tries

HypothesisT = TypeVar("HypothesisT")
OutputT = TypeVar("OutputT", bound=SegmentOutput)

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_BESIDE = " \t\u00a0"
_LINE_BREAKS = re.compile(f"[{LINE_BREAKS}]+")


def target_cap(num_source_tokens: int, limits: LengthLimits) -> int:
    """How many target tokens, with EOS, a segment may become: 2 n + 16, within the limit.

    Sound translations stay far below twice their source; what reaches it is a repetition
    loop, which the cap makes short, cheap and visible (`is_truncated`). The constant leaves
    room for very short sources.
    """
    return min(limits.max_target_length, 2 * num_source_tokens + 16)


def hypotheses_at(found: Sequence[Sequence[HypothesisT]], rank: int) -> list[HypothesisT]:
    """Each segment's hypothesis of a rank, or the last of a segment that has fewer.

    Args:
        found: Every segment's hypotheses, best first; each has at least one.
        rank: 0 is the best.
    """
    return [ranked[min(rank, len(ranked) - 1)] for ranked in found]


def without_surrogates(text: str) -> str:
    """`text` with every lone surrogate, which is no character, replaced by U+FFFD."""
    return _LONE_SURROGATE.sub("\ufffd", text)


class TextPipeline:
    """Prepares texts for one checkpoint and joins what comes back.

    It holds no state between calls; threads may share it.

    Args:
        tokenizer: Of the checkpoint.
        limits: Sentences with more source tokens are cut.
    """

    def __init__(self, tokenizer: Tokenizer, limits: LengthLimits) -> None:
        self._tokenizer = tokenizer
        self._tries = Tries(tokenizer, limits)

    def prefix_ids(self, pair: LanguagePair) -> tuple[int, ...]:
        """What the decoder is given first: the start token and the target's tags."""
        return tuple(self._tokenizer.target_prefix(pair))

    def source_pieces(self) -> dict[int, str]:
        """The piece of every source id that text and tags use."""
        return self._tokenizer.source_pieces()

    def target_pieces(self) -> dict[int, str]:
        """The same for the target."""
        return self._tokenizer.target_pieces()

    def prepare(self, text: str, pair: LanguagePair) -> PreparedText:
        """Split a text into segments, with token ids where the network has to see them.

        Args:
            text: Anything; empty and blank texts have no segments.
            pair: A pair of the checkpoint.
        """
        text = without_surrogates(text)
        segments: list[Segment] = []
        separators: list[str] = []
        done = 0
        for start, end, marks in _stretches(text, find_marks(text), pair):
            for segment, (low, high) in self._tries.first(text[start:end], marks, pair):
                segments.append(segment)
                separators.append(text[done : start + low])
                done = start + high
        separators.append(text[done:])
        return PreparedText(pair=pair, segments=tuple(segments), separators=tuple(separators))

    def draft(self, text: str, pair: LanguagePair) -> Draft[OutputT]:
        """A text on its way, of which nothing was asked yet; arguments as of `prepare`."""
        return started(self.prepare(text, pair))

    def finish(self, prepared: PreparedText, outputs: Sequence[SegmentOutput]) -> Translation:
        """Turn what the searches found into one text.

        Args:
            prepared: What `prepare` returned, or what a reviewed draft has.
            outputs: One for each of `prepared.network_segments`, in order. For another
                alternative, call again with other hypotheses.
        """
        found = zip(prepared.network_segments, outputs, strict=True)
        translated = [self._translated(*one, prepared.pair) for one in found]
        remaining = iter(translated)
        segments = tuple(
            copied(segment) if segment.is_verbatim else next(remaining)
            for segment in prepared.segments
        )
        return joined(prepared, segments)

    def review(self, draft: Draft[OutputT], *, is_last: bool = False) -> Draft[OutputT]:
        """A draft whose hypotheses were handed in: judged, with other tries of what is not sound.

        Args:
            draft: Every piece of it has hypotheses, at least one where the network was asked.
            is_last: Nothing is tried again, because there is no room for it.
        """
        return draft.with_parts(
            self._reviewed(piece, draft.pair, is_last=is_last) for piece in draft.pieces
        )

    def _reviewed(
        self, piece: Piece[OutputT], pair: LanguagePair, *, is_last: bool
    ) -> tuple[list[Piece[OutputT]], list[str]]:
        """What a piece becomes, with what of its source stands before, between and after."""
        segment = piece.segment
        if piece.translated is not None or not piece.found:
            return [piece], ["", ""]
        translated, found = self._chosen(segment, piece.found, pair)
        piece = replace(piece, found=found, translated=translated)
        failed = translated.quality.failed
        tries = []
        if failed and not is_last:
            tries = self._tries.next(segment, find_inner_marks(segment.text), failed, pair)
        if not tries:
            return [best_of(piece)], ["", ""]
        edges = [0, *(place for _, span in tries for place in span), len(segment.text)]
        separators = [
            segment.text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)
        ]
        # Another try of a part of it is no try of it: the rest stands in the separators.
        is_whole = [span for _, span in tries] == [(0, len(segment.text))]
        earlier = piece if is_whole else None
        others = [replace(other, is_cut=other.is_cut or segment.is_cut) for other, _ in tries]
        return [
            Piece(segment=other, found=() if other.is_verbatim else None, earlier=earlier)
            for other in others
        ], separators

    def _chosen(
        self, segment: Segment, found: tuple[OutputT, ...], pair: LanguagePair
    ) -> tuple[TranslatedSegment, tuple[OutputT, ...]]:
        """The hypothesis that stands, as text; and those that are sound, or all, it in front."""
        if not segment.is_chosen:
            return self._translated(segment, found[0], pair), found
        judged = [(self._translated(segment, output, pair), output) for output in found]
        judged.sort(key=lambda one: len(one[0].quality.failed))
        best = judged[0][0]
        is_sound = not best.quality.failed
        kept = [output for one, output in judged if not (is_sound and one.quality.failed)]
        return best, tuple(kept)

    def _translated(
        self, segment: Segment, output: SegmentOutput, pair: LanguagePair
    ) -> TranslatedSegment:
        # A network may write any character, but only the source breaks lines.
        text = _LINE_BREAKS.sub(" ", self._tokenizer.decode(output.token_ids)).strip()
        is_lost = False
        marks: tuple[str, ...] = ()
        if segment.carried is not None:
            restored = self._restored(segment.carried, output, text, pair)
            text, is_lost, marks = restored.text, restored.is_lost, segment.carried.marks
        failed = failed_checks(
            Compared(
                source=segment.text,
                target=text,
                source_ids=segment.source_ids,
                target_ids=output.token_ids,
                marks=marks,
                is_lost=is_lost,
                is_truncated=output.is_truncated,
            )
        )
        return TranslatedSegment(
            source=segment.text,
            text=text.replace("\ufffd", "").strip() if "characters" in failed else text,
            score=output.score,
            is_verbatim=False,
            is_cut=segment.is_cut,
            is_truncated=output.is_truncated,
            num_source_tokens=len(segment.source_ids),
            num_target_tokens=len(output.token_ids),
            quality=Quality(checked=ALL_CHECKS, failed=failed, num_tries=segment.num_tries),
        )

    def _restored(
        self, carried: Carried, output: SegmentOutput, text: str, pair: LanguagePair
    ) -> Restored:
        """What the network wrote, with the marks that it did not read."""
        if not carried.loose:
            return restore(carried, text, language=pair.target)
        ids = output.token_ids
        num_extras = self._tokenizer.num_source_extras(pair)
        num_before = num_extras - self._tokenizer.num_source_ends
        places = [self._tokenizer.encode(carried.shown[: one.place], pair) for one in carried.loose]
        return restore(
            carried,
            text,
            ends=[len(self._tokenizer.decode(ids[: n + 1])) for n in range(len(ids))],
            sources=[len(place) - num_extras + num_before for place in places],
            alignment=output.alignment or (),
            language=pair.target,
        )


def _stretches(
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
    nexts = [start for start, _ in spans[1:]] + [len(text)]
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

    Inline codes at its ends that begin or end an element inside of it stay in it.
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
    pairs = partners([text[mark.start : mark.end] for mark in marks])
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


def _is_loose(mark: Mark) -> bool:
    return mark.kind in LOOSE_KINDS
