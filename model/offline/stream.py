"""Texts that keep coming while others are translated: one session that never runs empty.

Owns the road of each text through the session: draft, search, review, further tries, until it is
whole. Texts belong to piles, of which several may be on their way; which segments join the session
next is `model.offline.waiting`'s. What a text becomes depends on the text alone, as everywhere.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from model.config import SearchConfig
from model.decode.session import DecodeRequest, Hypothesis
from model.errors import DecodingError
from model.offline.translator import REFILL_SHARE, Translator
from model.offline.waiting import WaitingSegments
from model.text.constraints.control import Control
from model.text.drafts.rounds import Draft
from model.text.drafts.segments import Translation
from model.text.languages.tags import LanguagePair

KeyT = TypeVar("KeyT", bound=Hashable)


@dataclass(slots=True, kw_only=True)
class _Text(Generic[KeyT]):
    """A text in work: its pending segments, and their hypotheses so far."""

    pile: int
    key: KeyT
    draft: Draft[Hypothesis]
    num_asked: int = 0
    found: dict[int, tuple[Hypothesis, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Ticket(Generic[KeyT]):
    text: _Text[KeyT]
    rank: int
    request: DecodeRequest


class TranslationStream(Generic[KeyT]):
    """Texts in, translations out, in whatever order they are done; belongs to one thread.

    Args:
        translator: Whose session it has, alone.
        pair: Direction of all texts.
        search: Of all texts.
        control: What is wanted of each.

    Raises:
        InputError: The beam is wider than the session.
    """

    def __init__(
        self, translator: Translator, pair: LanguagePair, search: SearchConfig, control: Control
    ) -> None:
        translator.check_beam(search.beam_size)
        self._translator = translator
        self._pair = pair
        self._search = search
        self._control = control
        self._waiting: WaitingSegments[_Ticket[KeyT]] = WaitingSegments(
            max_tokens=translator.encoder_token_budget
        )
        self._running: dict[int, _Ticket[KeyT]] = {}
        self._whole: list[tuple[KeyT, Translation | DecodingError]] = []

    @property
    def is_idle(self) -> bool:
        """Whether every text that was put in has been given."""
        return not (self._waiting or self._running or self._whole)

    def put(self, pile: int, key: KeyT, text: str) -> None:
        """Add a text.

        Args:
            pile: What it belongs to; piles take turns.
            key: By which its translation is given.
            text: It.
        """
        draft: Draft[Hypothesis] = self._translator.pipeline.draft(text, self._pair, self._control)
        self._ask(_Text(pile=pile, key=key, draft=draft))

    def step(self) -> list[tuple[KeyT, Translation | DecodingError]]:
        """One step of the session; the texts that are whole by it, or that have no translation."""
        session, max_rows = self._translator.session, self._translator.max_rows
        if self._waiting and session.free_rows * REFILL_SHARE >= max_rows:
            chosen = self._waiting.next_batch(session.free_rows // self._search.beam_size)
            if chosen:
                slots = session.admit([ticket.request for ticket in chosen])
                self._running.update(zip(slots, chosen, strict=True))
        if self._running:
            for sentence in session.step():
                self._answer(self._running.pop(sentence.slot_id), sentence.hypotheses)
        whole, self._whole = self._whole, []
        return whole

    def _ask(self, text: _Text[KeyT]) -> None:
        """Queue the segments that a text needs next; one that needs none is reviewed."""
        text.found.clear()
        requests = [
            self._translator.request(segment, self._pair, self._search)
            for segment in text.draft.asked
        ]
        text.num_asked = len(requests)
        for rank, request in enumerate(requests):
            self._waiting.put(text.pile, len(request.source_ids), _Ticket(text, rank, request))
        if not requests:
            self._review(text)

    def _answer(self, ticket: _Ticket[KeyT], hypotheses: tuple[Hypothesis, ...]) -> None:
        text = ticket.text
        text.found[ticket.rank] = hypotheses
        if len(text.found) < text.num_asked:
            return
        answers = [text.found[rank] for rank in range(text.num_asked)]
        if not all(answers):
            problem = DecodingError("the network gave no finite score for a segment")
            self._whole.append((text.key, problem))
            return
        text.draft = text.draft.answered(answers)
        self._review(text)

    def _review(self, text: _Text[KeyT]) -> None:
        text.draft = self._translator.pipeline.review(
            text.draft,
            can_hold=self._search.can_hold_phrases,
            is_exhaustive=self._search.is_exhaustive,
        )
        if text.draft.asked:
            self._ask(text)
        else:
            self._whole.append((text.key, text.draft.translation))
