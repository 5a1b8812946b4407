"""The offline driver: texts in, translations out, through the same session that serves.

Owns how a pile of segments is fed to a session: longest first, so that neighbours in a batch
are alike, and continuously, so that the batch never runs empty while one sentence finishes; what
is tried again comes after all others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from model.config import SearchConfig
from model.decode.footprint import session_limits
from model.decode.session import DecodeRequest, DecodingSession, Hypothesis
from model.errors import DecodingError, InputError
from model.text.constraints.control import Control
from model.text.drafts.rounds import Draft
from model.text.drafts.segments import PreparedText, Segment, Translation
from model.text.languages.tags import LanguagePair
from model.text.pipeline import TextPipeline, hypotheses_at, segment_cap

if TYPE_CHECKING:
    from model.checkpoint.weights import Checkpoint
    from model.loading import Runnable

REFILL_SHARE = 8  # admit when at least 1/8 of the rows are free: fewer, fuller encoder batches


class Translator:
    """A loaded checkpoint and a session of its own; belongs to one thread.

    Attributes:
        manifest: The checkpoint's description.
        pipeline: Its text path.
        session: What runs; a `TranslationStream` may have it for itself.
        max_rows: Beam rows that run at once.
        encoder_token_budget: Padded source tokens encoded at once.
    """

    def __init__(
        self,
        checkpoint: "Checkpoint | Runnable",
        *,
        max_rows: int = 128,
        encoder_token_budget: int = 4096,
    ) -> None:
        """Allocate a session.

        Args:
            checkpoint: A loaded checkpoint; its network's arithmetic is what runs.
            max_rows: Beam rows that run at once; at least the beam size asked for later.
            encoder_token_budget: Padded source tokens encoded at once.
        """
        manifest = checkpoint.manifest
        self.manifest = manifest
        self.pipeline = TextPipeline(checkpoint.tokenizer, manifest.limits)
        self.max_rows = max_rows
        self.encoder_token_budget = encoder_token_budget
        self.session = DecodingSession(
            checkpoint.network,
            tokens=manifest.tokens,
            limits=session_limits(manifest, max_rows=max_rows, max_slots=max_rows),
            shortlist=checkpoint.shortlist,
        )

    def translate(
        self,
        texts: Sequence[str],
        pair: LanguagePair,
        search: SearchConfig | None = None,
        *,
        on_finished: Callable[[int], object] | None = None,
        control: Control | None = None,
    ) -> list[Translation]:
        """Translate texts; the order is kept.

        Args:
            texts: Of any length and shape; each is split into segments.
            pair: One of the checkpoint's.
            search: All of it but max_length, which each segment has of its own (`segment_cap`);
                None for the defaults.
            on_finished: Called with the number of segments that just finished, each counted once:
                with 0 where they were tried again. What it raises ends the work.
            control: What is wanted of each of them.

        Raises:
            DecodingError: If the network gives no finite score.
        """
        each = self.translate_each(texts, pair, search, on_finished=on_finished, control=control)
        found = dict(each)
        return [found[index] for index in range(len(texts))]

    def translate_each(
        self,
        texts: Sequence[str],
        pair: LanguagePair,
        search: SearchConfig | None = None,
        *,
        on_finished: Callable[[int], object] | None = None,
        control: Control | None = None,
    ) -> Iterator[tuple[int, Translation]]:
        """Translate texts, each given when it is whole: its index, and its translation.

        A caller that stops before the last of them needs another translator.

        Args and errors as of `translate`.
        """
        for index, draft in self._drafts(texts, pair, search, on_finished, control):
            yield index, draft.translation

    def alternatives(
        self,
        texts: Sequence[str],
        pair: LanguagePair,
        search: SearchConfig,
        *,
        on_finished: Callable[[int], object] | None = None,
        control: Control | None = None,
    ) -> list[tuple[Translation, ...]]:
        """Several translations of each text, the most likely first; the order of texts is kept.

        Alternative k of a text joins the k-th hypotheses of its segments, or the last one of a
        segment that has fewer.

        Args:
            texts: As in `translate`.
            pair: As in `translate`.
            search: Its num_hypotheses says how many.
            on_finished: As in `translate`.
            control: As in `translate`.

        Raises:
            DecodingError: If the network gives no finite score.
        """
        each = self.alternatives_each(texts, pair, search, on_finished=on_finished, control=control)
        found = dict(each)
        return [found[index] for index in range(len(texts))]

    def alternatives_each(
        self,
        texts: Sequence[str],
        pair: LanguagePair,
        search: SearchConfig,
        *,
        on_finished: Callable[[int], object] | None = None,
        control: Control | None = None,
    ) -> Iterator[tuple[int, tuple[Translation, ...]]]:
        """What `alternatives` finds, given as `translate_each` gives it."""
        for index, draft in self._drafts(texts, pair, search, on_finished, control):
            found = [ranked[: search.num_hypotheses] for ranked in draft.found]
            count = max(map(len, found), default=1)
            others = [hypotheses_at(found, rank) for rank in range(1, count)]
            prepared = draft.prepared
            rest = (self.pipeline.finish(prepared, hypotheses) for hypotheses in others)
            yield index, (draft.translation, *rest)

    def _drafts(
        self,
        texts: Sequence[str],
        pair: LanguagePair,
        search: SearchConfig | None,
        on_finished: Callable[[int], object] | None,
        control: Control | None,
    ) -> Iterator[tuple[int, Draft[Hypothesis]]]:
        """Each text once it is finished; texts that need another round wait for the others."""
        search = search or SearchConfig()
        waiting: dict[int, Draft[Hypothesis]] = {
            index: self.pipeline.draft(text, pair, control) for index, text in enumerate(texts)
        }
        while waiting:
            again: dict[int, Draft[Hypothesis]] = {}
            for index, draft in self._answered(waiting, pair, search, on_finished):
                reviewed = self.pipeline.review(
                    draft,
                    can_hold=search.can_hold_phrases,
                    is_exhaustive=search.is_exhaustive,
                )
                if reviewed.asked:
                    again[index] = reviewed
                else:
                    yield index, reviewed
            waiting, on_finished = again, _uncounted(on_finished)

    def _answered(
        self,
        drafts: Mapping[int, Draft[Hypothesis]],
        pair: LanguagePair,
        search: SearchConfig,
        on_finished: Callable[[int], object] | None,
    ) -> Iterator[tuple[int, Draft[Hypothesis]]]:
        """Each text once all its segments have been searched, with the hypotheses."""
        places, requests = [], []
        num_asked: dict[int, int] = {}
        for index, draft in drafts.items():
            own = [self.request(segment, pair, search) for segment in draft.asked]
            num_asked[index] = len(own)
            places += [(index, rank) for rank in range(len(own))]
            requests += own
            if not own:
                yield index, draft
        found: dict[int, dict[int, tuple[Hypothesis, ...]]] = {}
        for number, hypotheses in self._search_each(requests, on_finished=on_finished):
            index, rank = places[number]
            by_rank = found.setdefault(index, {})
            by_rank[rank] = _checked(hypotheses)
            if len(by_rank) == num_asked[index]:
                del found[index]
                answers = [by_rank[rank] for rank in range(len(by_rank))]
                yield index, drafts[index].answered(answers)

    def requests(
        self, prepared: PreparedText, pair: LanguagePair, search: SearchConfig
    ) -> list[DecodeRequest]:
        """The requests of a prepared text, one a network segment."""
        return [self.request(segment, pair, search) for segment in prepared.network_segments]

    def request(self, segment: Segment, pair: LanguagePair, search: SearchConfig) -> DecodeRequest:
        """The request of a segment that the network sees."""
        cap = segment_cap(segment, self.manifest.limits)
        return DecodeRequest(
            source_ids=segment.source_ids,
            prefix_ids=self.pipeline.prefix_ids(pair),
            search=segment.searched(replace(search, max_length=cap)),
            forced_ids=segment.forced_ids,
            phrases=segment.required_phrases,
        )

    def check_beam(self, beam_size: int) -> None:
        """Refuse a beam that does not fit.

        Raises:
            InputError: It is wider than the session.
        """
        if beam_size > self.max_rows:
            raise InputError(
                f"beam_size is {beam_size}; this translator has {self.max_rows} rows",
                value=beam_size,
                limit=self.max_rows,
            )

    def search(
        self,
        requests: Sequence[DecodeRequest],
        *,
        on_finished: Callable[[int], object] | None = None,
    ) -> list[tuple[Hypothesis, ...]]:
        """Run searches; results in the order of the requests.

        Raises:
            InputError: If a beam is wider than the session.
        """
        found = dict(self._search_each(requests, on_finished=on_finished))
        return [found[number] for number in range(len(requests))]

    def _search_each(
        self, requests: Sequence[DecodeRequest], *, on_finished: Callable[[int], object] | None
    ) -> Iterator[tuple[int, tuple[Hypothesis, ...]]]:
        """Numbers of the requests with their results, in the order in which they are found."""
        self.check_beam(max((request.search.beam_size for request in requests), default=1))
        waiting = sorted(range(len(requests)), key=lambda i: len(requests[i].source_ids))
        running: dict[int, int] = {}
        while waiting or running:
            if waiting and self.session.free_rows * REFILL_SHARE >= self.max_rows:
                chosen = self._next_batch(waiting, requests)
                slots = self.session.admit([requests[index] for index in chosen])
                running.update(zip(slots, chosen, strict=True))
            finished = self.session.step()
            for sentence in finished:
                yield running.pop(sentence.slot_id), sentence.hypotheses
            if finished and on_finished is not None:
                on_finished(len(finished))

    def _next_batch(self, waiting: list[int], requests: Sequence[DecodeRequest]) -> list[int]:
        """Take the longest waiting sentences that fit; the first of them always does."""
        chosen: list[int] = []
        free_rows = self.session.free_rows
        longest = len(requests[waiting[-1]].source_ids)
        while waiting:
            request = requests[waiting[-1]]
            num_tokens = longest * (len(chosen) + 1)
            if request.search.beam_size > free_rows:
                break
            if chosen and num_tokens > self.encoder_token_budget:
                break
            free_rows -= request.search.beam_size
            chosen.append(waiting.pop())
        return chosen


def _uncounted(
    on_finished: Callable[[int], object] | None,
) -> Callable[[int], object] | None:
    """The same, for segments that were counted before."""
    return None if on_finished is None else lambda _: on_finished(0)


def _checked(hypotheses: tuple[Hypothesis, ...]) -> tuple[Hypothesis, ...]:
    if not hypotheses:
        raise DecodingError("the network gave no finite score for a segment")
    return hypotheses
