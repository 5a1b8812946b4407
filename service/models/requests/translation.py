"""Request for translation, what is found for its texts, and what becomes of them: types alone.

Owns what passes between the contracts, which check values and write replies, and the drivers
(`service.models.translating.translator` and those above it).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Self

import msgspec
from msgspec import structs

from model.config import Sampling, SearchConfig, StoppingRule
from model.documents.notation.document import DocumentOptions
from model.request import Hypothesis
from model.text.constraints.control import Control
from model.text.constraints.glossary import Glossary
from model.text.drafts.segments import PreparedText, TranslatedSegment, Translation
from model.text.languages.detection import Detection
from model.text.subwords.spans import TokenSpans
from service.models.routes.routing import Route
from service.priority import Priority

MarkupKind = Literal["html", "xml"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Markup:
    """Notation of texts that have tags.

    Attributes:
        kind: What it is.
        options: Elements that are read in another way than the rest.
    """

    kind: MarkupKind
    options: DocumentOptions = DocumentOptions()  # noqa: RUF009  # frozen


class SegmentTally:
    """Segments of one request, by the engine that they are for: routes of it can have the same."""

    def __init__(self) -> None:
        self._num: dict[object, int] = {}

    def add(self, engine: object, number: int) -> int:
        """How many there are for an engine, with so many more."""
        self._num[engine] = self._num.get(engine, 0) + number
        return self._num[engine]


class TranslationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request, checked; a structure, as it is made and changed for every request.

    Attributes:
        texts: What to translate.
        route: From where to where, and by which checkpoints.
        beam_size: Hypotheses kept at every step.
        length_penalty: Exponent of the score.
        num_alternatives: Further translations per text; below `beam_size`.
        max_length: Target tokens of a segment with EOS; None leaves it to the source's length,
            which caps it in any case.
        with_alignment: Also say which source token each target token attended to most.
        tally: Counts segments of all parts of a request that was parted; None: this is the whole.
        with_attention: Also say how much each target token attended to each source token.
        timeout_seconds: The deadline, from now.
        priority: The class it is in by what is known of it; its segments wait in that one, or as
            bulk if they turn out to be more work than an interactive request may be.
        stopping: When the search of a segment ends.
        client: Whose it is, as a number that says nothing of them.
        by_source: Where the source is to be detected, the route from each language that a text may
            be in; `route` is then that of a text that says nothing of its language.
        spent_seconds: Of the deadline's, those that are over.
        cache_scope: Whose segments are found in the cache again: a key's name; empty without one.
        markup: Notation of the texts; None where they are plain.
        target_prefixes: What the translation of each text begins with; none of them: anything.
        glossary: What terms have to be translated as.
        sampling: How translations are drawn; None: they are searched for.
        diversity: How much alternatives differ, from 0, the likeliest, to 1.
        num_groups: Groups that the beams are divided into, which avoid each other; 1: none.
        diversity_penalty: What a token costs for each hypothesis of another group that chose it.
        no_repeat_ngram: So many tokens in a row come in no segment twice; 0: they may.
        is_watched: Whoever hears of its sentences hears of them while they are written too; of a
            search with one beam.
    """

    texts: tuple[str, ...]
    route: Route
    beam_size: int
    length_penalty: float
    num_alternatives: int
    max_length: int | None
    with_alignment: bool
    timeout_seconds: float
    priority: Priority = "interactive"
    stopping: StoppingRule = "exact"
    client: int = 0
    by_source: Mapping[str, Route] | None = None
    spent_seconds: float = 0.0
    cache_scope: str = ""
    markup: Markup | None = None
    target_prefixes: tuple[str, ...] = ()
    glossary: Glossary | None = None
    sampling: Sampling | None = None
    diversity: float = 0.0
    num_groups: int = 1
    diversity_penalty: float = 0.0
    no_repeat_ngram: int = 0
    with_attention: bool = False
    tally: SegmentTally | None = None
    is_watched: bool = False

    @property
    def is_plain(self) -> bool:
        """What is done to its texts depends on their length alone: little where they are short."""
        return not (self.glossary or self.target_prefixes or self.num_alternatives)

    def search(self, cap: int) -> SearchConfig:
        """How a segment is searched that may have so many target tokens."""
        return SearchConfig(
            beam_size=self.beam_size,
            length_penalty=self.length_penalty,
            stopping=self.stopping,
            num_hypotheses=self.beam_size if self.diversity else self.num_alternatives + 1,
            max_length=min(cap, self.max_length or cap),
            with_alignment=self.with_alignment,
            with_attention=self.with_attention,
            sampling=self.sampling,
            num_groups=self.num_groups,
            diversity_penalty=self.diversity_penalty,
            no_repeat_ngram=self.no_repeat_ngram,
        )

    def in_class(self, priority: Priority) -> Self:
        """The same request with the class that its segments turned out to be in."""
        return self if priority == self.priority else structs.replace(self, priority=priority)

    @property
    def controls(self) -> list[Control]:
        """What is wanted of each text's translation."""
        prefixes = self.target_prefixes or ("",) * len(self.texts)
        return [Control(target_prefix=prefix, glossary=self.glossary) for prefix in prefixes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Origin of a text.

    Attributes:
        route: From its language to the target.
        detected: What its language was found to be; None where the request names it.
    """

    route: Route
    detected: Detection | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """Segment in the pivot language, between two hops.

    Attributes:
        text: Its translation there.
        hypothesis: What that was made of.
    """

    text: str
    hypothesis: Hypothesis


class TranslatedText(msgspec.Struct, frozen=True, kw_only=True):
    """One text's translations; a structure for the same reason as `TranslationRequest`.

    Attributes:
        best: The translation.
        alternatives: Further ones that differ from it and from each other, best first.
        hypotheses: For every segment of `best` the hypothesis it was made of; None for a
            segment that the network has not seen.
        between: For every segment what it was between two hops; None for one that was copied, and
            where there was one hop.
        spans: For every segment where its tokens are; None for one that was copied, and where no
            alignment was asked for.
        num_characters: What it says, in characters, tags left out; None where it is plain text.
        origin: Where it came from and by which way; None until the request is answered.
    """

    best: Translation
    alternatives: tuple[str, ...]
    hypotheses: tuple[Hypothesis | None, ...]
    between: tuple[Between | None, ...] | None = None
    spans: tuple[TokenSpans | None, ...] | None = None
    num_characters: int | None = None
    origin: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneSegment:
    """A sentence of a request of which nothing will change any more.

    Attributes:
        text_index: Which text it is of.
        index: Which sentence of it.
        start: Characters of the text before it.
        source: The sentence.
        text: Its translation.
        segments: What it became: itself, or its pieces if it was split around its marks.
        separator: What stands before it in the translation, as `expected_separators` has it.
    """

    text_index: int
    index: int
    start: int
    source: str
    text: str
    segments: tuple[TranslatedSegment, ...]
    separator: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedText:
    """Text of a sentence that the engine is at work on, as the network writes it.

    Attributes:
        text_index: Which text it is of.
        index: Which sentence of it.
        text: What stands behind what was told of it before.
        is_restart: What was told before does not count any more: the sentence begins anew.
    """

    text_index: int
    index: int
    text: str
    is_restart: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowingSentence:
    """A sentence that is written: of which there may be text that nobody has seen.

    Attributes:
        text_index: Which text it is of.
        index: Which sentence of it.
        take: Gives that text, once; None if there is none.
    """

    text_index: int
    index: int
    take: Callable[[], AddedText | None]

    @property
    def added(self) -> AddedText | None:
        """The text that is taken now, of the sentence at this place."""
        added = self.take()
        return None if added is None else replace(added, text_index=self.text_index)


OnSegment = Callable[[DoneSegment | GrowingSentence], None]
"""Called with a sentence as soon as it is done, in any order.

Of a request that is watched also whenever it has grown until then.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedText:
    """A text and what was found for it.

    Attributes:
        prepared: Its segments.
        found: For each one that the network has seen the hypotheses, best first.
        translation: What the best of them make.
    """

    prepared: PreparedText
    found: tuple[tuple[Hypothesis, ...], ...]
    translation: Translation

    @property
    def best(self) -> list[Hypothesis]:
        """The best of each."""
        return [ranked[0] for ranked in self.found]
