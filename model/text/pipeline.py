"""Text pipeline: texts to segments (`prepare`), translations to texts (`finish`); no I/O.

Owns the order of the stages of the text path, and their rules. It does not find sentences
(`model.text.sentences.segmenter`) or marks (`model.text.marks.finding`), does not make tokens
(`model.text.subwords.tokenizer`) and does not translate; two drivers do, `model.offline.translator`
and `service.models.translating.translator`. They ask the network for what a `Draft` asks for, and
have it reviewed, until it asks for nothing: most texts are whole after one round.

The rules, all of them visible in the result:

- Every sentence is a segment of its own, always: networks are trained on sentences.
- What stands between segments (spaces, line breaks, tabs, bullets and other beginnings of lines,
  walls of tables, emoji and tags around a sentence) comes back byte for byte. One thing is added:
  where the source has no space between two sentences because its script has none (Chinese,
  Japanese, Thai …) and the target's script needs one, a space.
- A sentence that is too long for the network is cut, and its pieces say so (`is_cut`).
- A segment without any letter outside its marks is copied and never sent to the network: numbers,
  links, placeholders and blocks of code stay as they are.
- Marks inside a sentence are carried (`model.text.marks.carrying`), verified, and carried in
  another way if they were lost. The last way is to split around them, and no way loses one.
- A sentence in capitals is translated in ordinary casing, and its translation is in capitals. No
  other casing is touched.
- What a check finds wrong is tried again in another way (`model.text.drafts.tries`), and if that
  does not help, said (`Quality`).
- Lone surrogates, which are no characters, become U+FFFD before anything else.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from model.config import LengthLimits
from model.errors import InputError
from model.phrases import Alternatives
from model.text.constraints.control import Beginning, Control
from model.text.constraints.glossary import Glossary, Term, inside, uses_of
from model.text.constraints.required import phrases_of
from model.text.drafts.checks import ALL_CHECKS, PLAIN_CHECKS, Compared, Quality, failed_checks
from model.text.drafts.rounds import Draft, Piece, best_of, started
from model.text.drafts.segments import (
    PreparedText,
    Segment,
    SegmentOutput,
    TranslatedSegment,
    Translation,
    begun_copy,
    copied,
    joined,
)
from model.text.drafts.tries import Placed, Tries, merged, without
from model.text.languages.tags import LanguagePair
from model.text.marks.carried import Carried, Restored
from model.text.marks.carrying import hidden, restore, without_marks_of
from model.text.marks.finding import Mark, find_inner_marks, find_marks
from model.text.marks.inside import places_beside_words
from model.text.marks.seams import replaced, seam
from model.text.sentences.segmenter import LINE_BREAKS
from model.text.sentences.stretches import stretches
from model.text.subwords.spans import Span, token_spans
from model.text.subwords.tokenizer import Tokenizer, readable

HypothesisT = TypeVar("HypothesisT")
OutputT = TypeVar("OutputT", bound=SegmentOutput)

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_BREAKS = re.compile(f"[{LINE_BREAKS}]+")


def target_cap(num_source_tokens: int, limits: LengthLimits) -> int:
    """How many target tokens, with EOS, a segment may become: 2 n + 16, within the limit.

    Sound translations stay far below twice their source; what reaches it is a repetition
    loop, which the cap makes short, cheap and visible (`is_truncated`). The constant leaves
    room for very short sources.
    """
    return min(limits.max_target_length, 2 * num_source_tokens + 16)


def segment_cap(segment: Segment, limits: LengthLimits) -> int:
    """How many target tokens, with EOS, a segment may become, what it has to begin with included.

    Args:
        segment: One that the network sees.
        limits: Of the checkpoint.
    """
    cap = target_cap(len(segment.source_ids), limits)
    return min(limits.max_target_length, cap + len(segment.forced_ids))


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
        self._limits = limits

    def prefix_ids(self, pair: LanguagePair) -> tuple[int, ...]:
        """What the decoder is given first: the start token and the target's tags."""
        return tuple(self._tokenizer.target_prefix(pair))

    def source_pieces(self) -> dict[int, str]:
        """The piece of every source id that text and tags use."""
        return self._tokenizer.source_pieces()

    def target_pieces(self) -> dict[int, str]:
        """The same for the target."""
        return self._tokenizer.target_pieces()

    def source_spans(self, segment: Segment, pair: LanguagePair) -> tuple[Span | None, ...]:
        """Where the source tokens of a segment are in its text."""
        return token_spans(self._tokenizer.source_tokens(segment.source_ids, pair), segment.text)

    def target_spans(self, text: str, target_ids: Sequence[int]) -> tuple[Span | None, ...]:
        """Where target tokens are in the translation that was made of them."""
        return token_spans(self._tokenizer.target_tokens(target_ids), text)

    def prepare(
        self, text: str, pair: LanguagePair, control: Control | None = None
    ) -> PreparedText:
        """Split a text into segments, with token ids where the network has to see them.

        Args:
            text: Anything; empty and blank texts have no segments.
            pair: A pair of the checkpoint.
            control: What the caller wants of the translation.

        Raises:
            InputError: The network cannot write so long a beginning.
        """
        control = control or Control()
        text = without_surrogates(text)
        segments: list[Segment] = []
        separators: list[str] = []
        done = 0
        for start, end, marks in stretches(text, find_marks(text), pair):
            for segment, (low, high) in self._first(text[start:end], marks, pair, control.glossary):
                segments.append(segment)
                separators.append(text[done : start + low])
                done = start + high
        separators.append(text[done:])
        if control.target_prefix:
            segments = self._begun(segments, control.target_prefix, pair)
        return PreparedText(pair=pair, segments=tuple(segments), separators=tuple(separators))

    def _first(
        self, text: str, marks: Sequence[Mark], pair: LanguagePair, glossary: Glossary | None
    ) -> Iterable[Placed]:
        """The first try of a stretch: terms are left to the network, unless nothing else is."""
        terms = [] if glossary is None else glossary.find(text, marks)
        if glossary is None or not terms:
            return self._tries.first(text, marks, pair)
        carried = merged(marks, [term.mark for term in terms])
        placed: list[Placed] = []
        if not glossary.is_carried and any(map(str.isalpha, without(text, carried))):
            placed = list(self._tries.first(text, marks, pair))
        if len(placed) != 1:  # a cut could go through a term
            placed = list(self._tries.first(text, carried, pair))
        else:
            phrases = self._phrases(placed[0][0], terms, pair)
            placed = [(replace(placed[0][0], phrases=phrases), placed[0][1])]
        return [(replace(one, terms=inside(terms, *span)), span) for one, span in placed]

    def _phrases(
        self, segment: Segment, terms: Sequence[Term], pair: LanguagePair
    ) -> tuple[Alternatives, ...]:
        """The terms of a segment as tokens; none if not all can be written by the network."""
        if segment.carried is not None and segment.carried.casing is not None:
            return ()
        return phrases_of(terms, self._tokenizer, pair)

    def _begun(self, segments: Sequence[Segment], prefix: str, pair: LanguagePair) -> list[Segment]:
        """Segments of which the first that is translated has to begin in a certain way.

        What is a glossary's terms alone is translated too, though no network sees it.
        """
        are_translated = (bool(one.terms) or not one.is_verbatim for one in segments)
        first = next((index for index, one in enumerate(are_translated) if one), None)
        return [
            self._beginning_with(segment, prefix, pair) if index == first else segment
            for index, segment in enumerate(segments)
        ]

    def _beginning_with(self, segment: Segment, prefix: str, pair: LanguagePair) -> Segment:
        if segment.is_verbatim:
            return begun_copy(segment, prefix, pair)
        shown = prefix if segment.carried is None else hidden(segment.carried, prefix)
        *token_ids, _ = self._tokenizer.encode_target(shown.strip())
        limit = self._limits.max_target_length // 2
        if len(token_ids) > limit:
            raise InputError(
                f"target_prefix has {len(token_ids)} tokens; it may have {limit}",
                value=len(token_ids),
                limit=limit,
            )
        return replace(segment, beginning=Beginning(text=prefix, token_ids=tuple(token_ids)))

    def draft(
        self, text: str, pair: LanguagePair, control: Control | None = None
    ) -> Draft[OutputT]:
        """A text on its way, of which nothing was asked yet; arguments as of `prepare`."""
        return started(self.prepare(text, pair, control))

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

    def review(
        self,
        draft: Draft[OutputT],
        *,
        can_hold: bool = False,
        is_exhaustive: bool = False,
        is_last: bool = False,
    ) -> Draft[OutputT]:
        """A draft whose hypotheses were handed in: judged, with other tries of what is not sound.

        Args:
            draft: Every piece of it has hypotheses, at least one where the network was asked.
            can_hold: Its searches can be held to phrases (`SearchConfig.can_hold_phrases`).
            is_exhaustive: They gave all that they found (`SearchConfig.is_exhaustive`).
            is_last: Nothing is tried again, because there is no room for it.
        """
        review = partial(
            self._reviewed, can_hold=can_hold, is_exhaustive=is_exhaustive, is_last=is_last
        )
        return draft.with_parts(review(piece, draft.pair) for piece in draft.pieces)

    def _reviewed(
        self,
        piece: Piece[OutputT],
        pair: LanguagePair,
        *,
        can_hold: bool,
        is_exhaustive: bool,
        is_last: bool,
    ) -> tuple[list[Piece[OutputT]], list[str]]:
        """What a piece becomes, with what of its source stands before, between and after."""
        segment = piece.segment
        if piece.translated is not None or not piece.found:
            return [piece], ["", ""]
        translated, found = self._chosen(segment, piece.found, pair)
        piece = Piece(segment=segment, found=found, translated=translated, earlier=piece.earlier)
        failed = translated.quality.failed
        tries = []
        if failed and not is_last:
            marks = merged(find_inner_marks(segment.text), [term.mark for term in segment.terms])
            tries = self._tries.next(segment, marks, failed, pair, can_hold=can_hold)
        if is_exhaustive and [other for other, _ in tries] == [replace(segment, num_tries=1)]:
            # The same search, for the other hypotheses of its beam, which are here.
            again = Piece(segment=tries[0][0], found=piece.found, earlier=piece)
            return self._reviewed(again, pair, can_hold=can_hold, is_exhaustive=True, is_last=False)
        is_whole = [span for _, span in tries] == [(0, len(segment.text))]
        if not tries or (segment.beginning is not None and not is_whole):
            return [best_of(piece)], ["", ""]
        edges = [0, *(place for _, span in tries for place in span), len(segment.text)]
        separators = [
            segment.text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)
        ]
        # Another try of a part of it is no try of it: the rest stands in the separators.
        earlier = piece if is_whole else None
        others = [
            replace(
                other,
                is_cut=other.is_cut or segment.is_cut,
                terms=inside(segment.terms, *span),
                phrases=segment.phrases if is_whole else (),
            )
            for other, span in tries
        ]
        if segment.beginning is not None:
            others = self._begun(others, segment.beginning.text, pair)
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
        text, is_lost, marks = self._written(segment, output, pair)
        source = replaced(segment.text, [term.mark for term in segment.terms])
        terms = uses_of(segment.terms, segment.text, text)
        beginning = "" if segment.beginning is None else segment.beginning.text
        failed = failed_checks(
            Compared(
                source=source,
                target=text,
                source_ids=segment.source_ids,
                target_ids=output.token_ids,
                marks=marks,
                is_lost=is_lost,
                is_truncated=output.is_truncated,
                pair=pair,
                is_term_missed=not all(term.is_hit for term in terms),
                beginning=beginning,
            )
        )
        checked = ALL_CHECKS if terms else PLAIN_CHECKS
        return TranslatedSegment(
            source=segment.text,
            text=_readable(text, beginning) if "characters" in failed else text,
            score=output.score,
            is_verbatim=False,
            is_cut=segment.is_cut,
            is_truncated=output.is_truncated,
            num_source_tokens=len(segment.source_ids),
            num_target_tokens=len(output.token_ids),
            quality=Quality(checked=checked, failed=failed, num_tries=segment.num_tries),
            terms=terms,
        )

    def _written(
        self, segment: Segment, output: SegmentOutput, pair: LanguagePair
    ) -> tuple[str, bool, tuple[str, ...]]:
        """The text that the network wrote, whether marks are lost, and those that were carried."""
        # A network may write any character, but only the source breaks lines.
        whole = _LINE_BREAKS.sub(" ", self._tokenizer.decode(output.token_ids))
        beginning, carried = segment.beginning, segment.carried
        if beginning is None:
            if carried is None:
                return whole.strip(), False, ()
            restored = self._restored(carried, output, whole.strip(), pair)
            return restored.text, restored.is_lost, carried.marks
        num_forced = len(beginning.token_ids) + self._tokenizer.num_forced_first
        done = len(self._tokenizer.decode(output.token_ids[:num_forced]))
        rest = whole[done:].strip()
        space = " " if whole[done : done + 1].isspace() else ""
        if carried is None:
            return beginning.joined(space + rest), False, ()
        left = without_marks_of(carried, beginning.text)
        restored = self._restored(left, output, rest, pair, done=done + len(space))
        space = seam(beginning.text, space, restored.text, pair.target)
        return beginning.joined(space + restored.text), restored.is_lost, carried.marks

    def raw_text(self, token_ids: Sequence[int], *, is_whole: bool) -> str:
        """What the network wrote, marks and capitals not put back, up to what cannot be read.

        Args:
            token_ids: Target ids without prefix and EOS.
            is_whole: None follows; else only what stays whichever follow.
        """
        tokenizer = self._tokenizer
        decode = tokenizer.decode if is_whole else tokenizer.decode_beginning
        return _LINE_BREAKS.sub(" ", readable(decode(token_ids)))

    def _restored(
        self,
        carried: Carried,
        output: SegmentOutput,
        text: str,
        pair: LanguagePair,
        *,
        done: int = 0,
    ) -> Restored:
        """What the network wrote behind so many characters, with the marks that it did not read."""
        if not carried.loose:
            return restore(carried, text, language=pair.target)
        ids = output.token_ids
        num_extras = self._tokenizer.num_source_extras(pair)
        num_before = num_extras - self._tokenizer.num_source_ends
        shown = self._tries.readable(carried.shown, pair)
        places = [self._tokenizer.encode(shown[:at], pair) for at in places_beside_words(carried)]
        ends = [len(self._tokenizer.decode(ids[: n + 1])) for n in range(len(ids))]
        return restore(
            carried,
            text,
            ends=[max(0, end - done) for end in ends],
            sources=[len(place) - num_extras + num_before for place in places],
            alignment=output.alignment or (),
            language=pair.target,
        )


def _readable(text: str, beginning: str) -> str:
    """A translation without characters that stand for none, but for those that it begins with."""
    start = len(beginning) if text.startswith(beginning) else 0
    return (text[:start] + text[start:].replace("\ufffd", "")).strip()
