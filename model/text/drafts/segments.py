"""Segments of a text, before and after the network: what the stages of the text path hand on.

Owns the types, and how translated segments become one text again with the separators of their
source. What becomes a segment, and what of it the network sees, is `model.text.pipeline`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Protocol

from model.config import SearchConfig
from model.phrases import Alternatives
from model.text.constraints.control import Beginning
from model.text.constraints.glossary import Term, TermUse, uses_of
from model.text.drafts.checks import Quality
from model.text.languages.scripts import UNSPACED_LANGUAGES
from model.text.languages.tags import LanguagePair, primary_language
from model.text.marks.carried import Carried
from model.text.marks.seams import Piece, needs_spaces, separator_between

RETRY_NGRAM = 3
"""Tokens in a row that come once where an earlier try looped: too few for a loop (`has_loop`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A sentence, or a piece of one, that is translated at once or copied.

    Attributes:
        text: The characters of the source, as they came.
        source_ids: What the network reads; empty when the segment is copied.
        is_cut: It is a piece of a sentence that was too long, or could not be translated whole.
        carried: What the network reads instead of the text, if it is something else.
        num_tries: How often this stretch of text was tried before in another way.
        terms: Of a glossary, in the text.
        copy: What it is copied as, if not as its text.
        beginning: What its translation has to begin with.
        phrases: Its terms as tokens, which its search can be held to; none where it cannot be.
        is_held: The search is held to them.
        was_held: An earlier try was.
        is_unrepeating: Its search says no few tokens in a row twice, as an earlier try looped.
    """

    text: str
    source_ids: tuple[int, ...]
    is_cut: bool = False
    carried: Carried | None = None
    num_tries: int = 0
    terms: tuple[Term, ...] = ()
    copy: str | None = None
    beginning: Beginning | None = None
    phrases: tuple[Alternatives, ...] = ()
    is_held: bool = False
    was_held: bool = False
    is_unrepeating: bool = False

    @property
    def is_verbatim(self) -> bool:
        """Whether it is copied and never sent to the network."""
        return not self.source_ids

    @property
    def is_chosen(self) -> bool:
        """Whether all hypotheses of the beam are wanted, to choose the first that is sound."""
        return self.carried is not None or self.num_tries > 0 or bool(self.terms)

    @property
    def forced_ids(self) -> tuple[int, ...]:
        """Target tokens that its translation has to begin with."""
        return () if self.beginning is None else self.beginning.token_ids

    @property
    def required_phrases(self) -> tuple[Alternatives, ...]:
        """What the search is asked to contain."""
        return self.phrases if self.is_held else ()

    def searched(self, search: SearchConfig) -> SearchConfig:
        """How it is searched: as a plain segment is, but for what its marks need to come back.

        Where sentences are drawn, a seed becomes the segment's own: by its tokens, so that neither
        its place nor its company changes what is drawn.
        """
        if search.sampling is not None:
            seed = self._seed(search.sampling.seed)
            search = replace(search, sampling=replace(search.sampling, seed=seed))
        if self.is_unrepeating and not 0 < search.no_repeat_ngram < RETRY_NGRAM:
            search = replace(search, no_repeat_ngram=RETRY_NGRAM)
        if not self.is_chosen:
            return search
        is_aligned = self.carried is not None and bool(self.carried.loose)
        return replace(
            search,
            num_hypotheses=search.beam_size,
            with_alignment=search.with_alignment or is_aligned,
        )

    def _seed(self, seed: int) -> int:
        whole = f"{seed} {self.num_tries} {self.source_ids}".encode()
        return int.from_bytes(blake2b(whole, digest_size=8).digest()) >> 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedText:
    """A text as segments.

    Attributes:
        pair: Its direction.
        segments: In the order of the text.
        separators: What stands before, between and after them: one more than segments.
    """

    pair: LanguagePair
    segments: tuple[Segment, ...]
    separators: tuple[str, ...]

    @property
    def network_segments(self) -> tuple[Segment, ...]:
        """Those that have to be translated, in order."""
        return tuple(segment for segment in self.segments if not segment.is_verbatim)

    @property
    def num_source_tokens(self) -> int:
        """Tokens that the network has to read."""
        return sum(len(segment.source_ids) for segment in self.segments)

    @property
    def text(self) -> str:
        """The source again, byte for byte (but for lone surrogates)."""
        return _interleave(self.separators, [segment.text for segment in self.segments])


class SegmentOutput(Protocol):
    """Result of the search for one segment, such as a session's `Hypothesis`."""

    @property
    def token_ids(self) -> Sequence[int]:
        """Target ids without prefix and EOS."""

    @property
    def score(self) -> float:
        """Length-normalised log-probability."""

    @property
    def is_truncated(self) -> bool:
        """Whether the end was forced at the cap."""

    @property
    def alignment(self) -> Sequence[int] | None:
        """For each token the source token attended to most, if it was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedSegment:
    """Translation of one segment, with its facts.

    Attributes:
        source: The characters of the source.
        text: Their translation, one line without space at its ends.
        score: Of the search; None for a copied segment.
        is_verbatim: It was copied.
        is_cut: It is a piece of a sentence that was too long, or could not be translated whole.
        is_truncated: The network did not come to an end within the cap.
        num_source_tokens: With prefix and EOS; 0 for a copied segment.
        num_target_tokens: Without prefix and EOS; 0 for a copied segment.
        quality: What was checked of it, and what failed.
        terms: Of a glossary, in its source.
    """

    source: str
    text: str
    score: float | None
    is_verbatim: bool
    is_cut: bool
    is_truncated: bool
    num_source_tokens: int
    num_target_tokens: int
    quality: Quality = Quality()  # noqa: RUF009  # frozen
    terms: tuple[TermUse, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """A translated text with the facts of every segment."""

    text: str
    segments: tuple[TranslatedSegment, ...]

    @property
    def is_cut(self) -> bool:
        """Whether a sentence was too long and translated in pieces."""
        return any(segment.is_cut for segment in self.segments)

    @property
    def is_truncated(self) -> bool:
        """Whether the end of a segment was forced, so that text may be missing."""
        return any(segment.is_truncated for segment in self.segments)

    @property
    def num_source_tokens(self) -> int:
        """Tokens that were read."""
        return sum(segment.num_source_tokens for segment in self.segments)

    @property
    def num_target_tokens(self) -> int:
        """Tokens that were written."""
        return sum(segment.num_target_tokens for segment in self.segments)

    @property
    def num_flagged(self) -> int:
        """Segments of which a check failed."""
        return sum(bool(segment.quality.failed) for segment in self.segments)


def copied(segment: Segment) -> TranslatedSegment:
    """A segment as its own translation, with what stands for its terms; those alone are checked."""
    text = _copy_of(segment)
    terms = uses_of(segment.terms, segment.text, text)
    is_missed = not all(term.is_hit for term in terms)
    return TranslatedSegment(
        source=segment.text,
        text=text,
        score=None,
        is_verbatim=True,
        is_cut=segment.is_cut,
        is_truncated=False,
        num_source_tokens=0,
        num_target_tokens=0,
        quality=Quality(
            checked=("terms",) if terms else (), failed=("terms",) if is_missed else ()
        ),
        terms=terms,
    )


def _copy_of(segment: Segment) -> str:
    return segment.text if segment.copy is None else segment.copy


def begun_copy(segment: Segment, prefix: str, pair: LanguagePair) -> Segment:
    """A copied segment whose copy begins with what the caller has written."""
    copy = _copy_of(segment)
    if copy.startswith(prefix):
        return segment
    is_unspaced = primary_language(pair.target) in UNSPACED_LANGUAGES
    beginning = Beginning(text=prefix, token_ids=())
    return replace(segment, copy=beginning.joined(copy if is_unspaced else " " + copy))


def joined(prepared: PreparedText, segments: Sequence[TranslatedSegment]) -> Translation:
    """A text of translated segments, with the separators of its source.

    Args:
        prepared: The text; its pair says which spaces are added.
        segments: One for each of its segments, in order.
    """
    separators = _target_separators(prepared, segments)
    text = _interleave(separators, [segment.text for segment in segments])
    return Translation(text=text, segments=tuple(segments))


def expected_separators(prepared: PreparedText) -> list[str]:
    """What stands before, between and after the segments of a text once they are translated.

    Where a translation turns out to be empty, or to end or begin with what is copied, it may be a
    space less.
    """
    return list(_target_separators(prepared, prepared.segments))


def _target_separators(
    prepared: PreparedText, segments: Sequence[Segment | TranslatedSegment]
) -> Iterator[str]:
    """The separators, with the spaces that the target needs and the source has not.

    Between parts of a sentence they have the target's signs and spaces.
    """
    pair = prepared.pair
    is_spaced = needs_spaces(pair)
    for index, separator in enumerate(prepared.separators):
        before, after = segments[max(0, index - 1) : index], segments[index : index + 1]
        neighbours = (*before, *after)
        is_gap = len(neighbours) == 2 and all(segment.text for segment in neighbours)
        is_own = not all(segment.is_verbatim and not segment.terms for segment in neighbours)
        if is_spaced and not separator and is_gap and is_own:
            yield " "
        elif any(segment.is_cut for segment in neighbours):
            first, last = (_part(one, pair) for one in (before, after))
            yield separator_between(first, separator, last, pair)
        else:
            yield separator


def _part(segments: Sequence[Segment | TranslatedSegment], pair: LanguagePair) -> Piece:
    """The segment at a seam, if any; of a target with spaces its translation may be unknown."""
    if not segments:
        return Piece(text="")
    segment = segments[0]
    if isinstance(segment, Segment):
        text, source = _copy_of(segment), segment.text
    else:
        text, source = segment.text, segment.source
    is_term = segment.is_verbatim and bool(segment.terms)
    shown = "_" if text and needs_spaces(pair) and not segment.is_verbatim else text
    return Piece(text=shown, source=source, is_word=bool(text), is_term=is_term)


def _interleave(separators: Iterator[str] | Sequence[str], segments: Sequence[str]) -> str:
    parts = [part for pair in zip(separators, [*segments, ""], strict=True) for part in pair]
    return "".join(parts)
