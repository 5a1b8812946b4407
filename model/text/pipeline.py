"""Text pipeline: texts to segments (`prepare`), translations to texts (`finish`); no I/O.

Owns what becomes a segment, what goes to the network, what is copied, and how the answers become
one text again. It does not find sentences (`model.text.segmenter`), does not make tokens
(`model.text.tokenizer`) and does not translate; two drivers do, `model.offline.translator` and
`service.models.translator`.

The rules, all of them visible in the result:

- Every sentence is a segment of its own, always: networks are trained on sentences.
- What stands between segments (spaces, line breaks, tabs) comes back byte for byte. One
  thing is added: where the source has no space between two sentences because its script has
  none (Chinese, Japanese, Thai …) and the target's script needs one, a space.
- A sentence that is too long for the network is cut, and its pieces say so (`is_cut`).
- A segment without any letter, or that is one address (https://…, name@host), is copied and
  never sent to the network: numbers and links stay as they are.
- Lone surrogates, which are no characters, become U+FFFD before anything else. Nothing else
  of a text is changed, and no casing is repaired afterwards.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from model.config import LengthLimits
from model.text.language import LanguagePair, primary_language
from model.text.segmenter import LINE_BREAKS, Span, cut_spans, sentence_spans
from model.text.tokenizer import Tokenizer

# Languages that are written without spaces between sentences.
UNSPACED_LANGUAGES = frozenset({"zh", "ja", "yue", "wuu", "th", "lo", "km", "my", "bo"})

HypothesisT = TypeVar("HypothesisT")

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ADDRESS = re.compile(r"(?:https?://|www\.)[!-~]+|[!-?A-~]+@[!-?A-~]+", re.IGNORECASE)
_LINE_BREAKS = re.compile(f"[{LINE_BREAKS}]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A sentence, or a piece of one, that is translated at once or copied.

    Attributes:
        text: The characters of the source, as they came.
        source_ids: As the tokenizer gives them; empty when the segment is copied.
        is_cut: It is a piece of a sentence that was too long.
    """

    text: str
    source_ids: tuple[int, ...]
    is_cut: bool = False

    @property
    def is_verbatim(self) -> bool:
        """Whether it is copied and never sent to the network."""
        return not self.source_ids


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedSegment:
    """Translation of one segment, with its facts.

    Attributes:
        source: The characters of the source.
        text: Their translation, one line without space at its ends.
        score: Of the search; None for a copied segment.
        is_verbatim: It was copied.
        is_cut: It is a piece of a sentence that was too long for the network.
        is_truncated: The network did not come to an end within the cap.
        num_source_tokens: With prefix and EOS; 0 for a copied segment.
        num_target_tokens: Without prefix and EOS; 0 for a copied segment.
    """

    source: str
    text: str
    score: float | None
    is_verbatim: bool
    is_cut: bool
    is_truncated: bool
    num_source_tokens: int
    num_target_tokens: int


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
        self._max_length = limits.max_source_length

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
        for start, end in sentence_spans(text, pair.source):
            for segment, (low, high) in self._segments(text[start:end], pair):
                segments.append(segment)
                separators.append(text[done : start + low])
                done = start + high
        separators.append(text[done:])
        return PreparedText(pair=pair, segments=tuple(segments), separators=tuple(separators))

    def finish(self, prepared: PreparedText, outputs: Sequence[SegmentOutput]) -> Translation:
        """Turn what the searches found into one text.

        Args:
            prepared: What `prepare` returned.
            outputs: One for each of `prepared.network_segments`, in order. For another
                alternative, call again with other hypotheses.
        """
        network_segments = zip(prepared.network_segments, outputs, strict=True)
        translated = [self._translated(segment, output) for segment, output in network_segments]
        remaining = iter(translated)
        segments = tuple(
            _copied(segment) if segment.is_verbatim else next(remaining)
            for segment in prepared.segments
        )
        return joined(prepared, segments)

    def _segments(self, sentence: str, pair: LanguagePair) -> Iterator[tuple[Segment, Span]]:
        """A sentence as one segment, or as several if it is too long, with their spans."""
        whole = self._segment(sentence, pair)
        if len(whole.source_ids) <= self._max_length:
            yield whole, (0, len(sentence))
            return
        spans = cut_spans(
            sentence, lambda piece: len(self._tokenizer.encode(piece, pair)), self._max_length
        )
        for start, end in spans:
            yield self._segment(sentence[start:end], pair, is_cut=True), (start, end)

    def _segment(self, text: str, pair: LanguagePair, *, is_cut: bool = False) -> Segment:
        source_ids: tuple[int, ...] = ()
        if any(map(str.isalpha, text)) and _ADDRESS.fullmatch(text) is None:
            source_ids = tuple(self._tokenizer.encode(text, pair))
        is_empty = len(source_ids) == self._tokenizer.num_source_extras(pair)
        # One character can be more tokens than fit (﷽); it cannot be cut, so it is copied.
        is_too_long = is_cut and len(source_ids) > self._max_length
        if is_empty or is_too_long:
            source_ids = ()
        return Segment(text=text, source_ids=source_ids, is_cut=is_cut)

    def _translated(self, segment: Segment, output: SegmentOutput) -> TranslatedSegment:
        # A network may write any character, but only the source breaks lines.
        text = _LINE_BREAKS.sub(" ", self._tokenizer.decode(output.token_ids)).strip()
        return TranslatedSegment(
            source=segment.text,
            text=text,
            score=output.score,
            is_verbatim=False,
            is_cut=segment.is_cut,
            is_truncated=output.is_truncated,
            num_source_tokens=len(segment.source_ids),
            num_target_tokens=len(output.token_ids),
        )


def joined(prepared: PreparedText, segments: Sequence[TranslatedSegment]) -> Translation:
    """A text of translated segments, with the separators of its source.

    Args:
        prepared: The text; its pair says which spaces are added.
        segments: One for each of its segments, in order.
    """
    separators = _target_separators(prepared, segments)
    text = _interleave(separators, [segment.text for segment in segments])
    return Translation(text=text, segments=tuple(segments))


def _copied(segment: Segment) -> TranslatedSegment:
    return TranslatedSegment(
        source=segment.text,
        text=segment.text,
        score=None,
        is_verbatim=True,
        is_cut=segment.is_cut,
        is_truncated=False,
        num_source_tokens=0,
        num_target_tokens=0,
    )


def _target_separators(
    prepared: PreparedText, segments: Sequence[TranslatedSegment]
) -> Iterator[str]:
    """The separators, with the spaces that the target needs and the source has not."""
    needs_space = (
        primary_language(prepared.pair.source) in UNSPACED_LANGUAGES
        and primary_language(prepared.pair.target) not in UNSPACED_LANGUAGES
    )
    for index, separator in enumerate(prepared.separators):
        neighbours = segments[index - 1 : index + 1] if index else ()
        is_gap = len(neighbours) == 2 and all(segment.text for segment in neighbours)
        is_translated = not all(segment.is_verbatim for segment in neighbours)
        yield " " if needs_space and not separator and is_gap and is_translated else separator


def _interleave(separators: Iterator[str] | Sequence[str], segments: Sequence[str]) -> str:
    parts = [part for pair in zip(separators, [*segments, ""], strict=True) for part in pair]
    return "".join(parts)
