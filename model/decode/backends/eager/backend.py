"""The backend in PyTorch: any device, any float type, the exact arithmetic of `model.nn`.

Owns the search of running sentences, on tensors, and the order of work within a step. The choice
among hypotheses is `choice`, when to stop is `finished`, where things lie is `slots`, the network
with its caches is `cached`.
"""

import math
from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from model.config import SpecialTokens
from model.decode import beam_search
from model.decode.backends.eager.cache import History
from model.decode.backends.eager.cached import CachedNetwork, Layout
from model.decode.backends.eager.slots import Slot, SlotTable
from model.decode.backends.torch_backend import TorchBackend
from model.decode.choice import choose, diversity_of
from model.decode.constraints import forced_token
from model.decode.lexical import Automata, LexicalStep, automata_of
from model.decode.repeats import repeat_mask
from model.decode.sampling import RowSampling, row_sampling, sample
from model.decode.scoring import hypothesis_score
from model.decode.token_checks import check_tokens
from model.nn.transformer import Transformer
from model.phrases import num_missed
from model.request import DecodeRequest, FinishedSentence, Hypothesis, SessionLimits
from model.shortlist import Shortlist, tokens_of_request


class EagerBackend(TorchBackend):
    """Running sentences as dense rows of tensors."""

    def __init__(
        self,
        transformer: Transformer,
        *,
        tokens: SpecialTokens,
        limits: SessionLimits,
        shortlist: Shortlist | None = None,
    ) -> None:
        """Allocate caches on the network's device, in its precision.

        Raises:
            UnsupportedVariantError: If the fast path does not run this network.
        """
        super().__init__(transformer, tokens=tokens, limits=limits)
        self._shortlist = shortlist
        self._network = CachedNetwork(
            transformer, limits=limits, suppressed_ids=tokens.suppressed_ids
        )
        self._history = History(
            max_rows=limits.max_rows,
            max_length=limits.max_target_length,
            device=self._device,
            dtype=self._score_dtype,
        )
        self._table = SlotTable(max_rows=limits.max_rows, max_slots=limits.max_slots)
        self._scores = torch.zeros_like(self._history.log_probs[:, 0])
        self._next_tokens = torch.zeros_like(self._history.tokens[:, 0])
        self._phrases: Tensor | None = None  # (rows, 2), nodes and phrases met, once there are any
        self._layout: Layout | None = None
        self._step = 0

    @torch.inference_mode()
    def admit(self, slot_ids: Sequence[int], requests: Sequence[DecodeRequest]) -> None:
        """Encode sentences as one padded batch; see `Backend.admit`."""
        check_tokens(requests, vocab_size=self._network.vocab_size, tokens=self._tokens)
        slots = [
            self._table.add(slot_id, request, step=self._step)
            for slot_id, request in zip(slot_ids, requests, strict=True)
        ]
        self._layout = None
        try:
            self._network.encode(
                [slot.request.source_ids for slot in slots], [slot.index for slot in slots]
            )
        except BaseException:
            for slot in slots:
                self._table.remove(slot)
            raise
        longest = max(len(request.source_ids) for request in requests)
        self._num_encoded_tokens += longest * len(requests)
        rows = self._ids([row for slot in slots for row in slot.rows])
        starts = [b % s.search.start_stride == 0 for s in slots for b in range(len(s.rows))]
        start = self._ids([slot.request.prefix_ids[0] for slot in slots for _ in slot.rows])
        self._scores[rows] = torch.zeros_like(self._scores[rows]).masked_fill_(
            self._ids(starts) == 0, float("-inf")
        )
        self._next_tokens[rows] = start
        if self._phrases is None and any(request.phrases for request in requests):
            self._phrases = torch.zeros_like(self._history.tokens[:, :2])
        if self._phrases is not None:
            self._phrases[rows] = 0

    @torch.inference_mode()
    def release(self, slot_id: int) -> None:
        """Drop a running sentence."""
        slot = self._table.get(slot_id)
        self._network.leave(slot, slot.num_fed(self._step))
        self._remove(slot)

    def written(self, slot_id: int) -> list[int]:
        """Tokens of a running sentence's first beam; see `Backend.written`."""
        slot = self._table.get(slot_id)
        end = slot.num_fed(self._step)
        begin = min(len(slot.request.prefix_ids) - 1, end)
        tokens: list[int] = self._history.tokens[slot.rows[0], begin:end].tolist()
        return tokens

    def check_integrity(self) -> None:
        """Assert that slots and rows agree."""
        self._table.check_integrity()

    def _remove(self, slot: Slot) -> None:
        self._table.remove(slot)
        self._layout = None

    @torch.inference_mode()
    def step(self) -> list[FinishedSentence]:
        """Extend every running hypothesis by one token; finished sentences leave."""
        self._watch.start()
        if self._layout is None:
            self._settle()
            self._layout = self._make_layout()
            self._network.arrange(self._layout)
        layout = self._layout
        positions = self._step - layout.started  # (R,)
        continuations, most_attended = self._network.step(
            self._next_tokens[: self._table.num_rows],
            positions,
            step=self._step,
            watch=self._watch,
            repeats=self._repeats(layout),
        )
        if most_attended is not None:
            self._history.sources[torch.arange(self._table.num_rows), positions] = most_attended
        continuations = self._drawn(continuations, layout)
        continuations, forced, endless = self._force(continuations, layout)
        lexical = self._lexical(layout)
        candidates, decision = choose(
            self._scores[: self._table.num_rows],
            continuations,
            layout.groups,
            eos_id=self._tokens.eos_id,
            forced=forced,
            endless=endless,
            lexical=lexical,
            diversity=layout.diversity,
        )
        self._collect(candidates, decision, layout)
        self._apply(decision, positions, layout)
        if lexical is not None and self._phrases is not None:
            states = lexical.after(decision, layout.groups, in_prefix=endless)
            self._phrases[: self._table.num_rows] = torch.stack(states, dim=1)
        self._step += 1
        finished = self._leave(decision, layout)
        self._watch.lap("search")
        return finished

    def _settle(self) -> None:
        """Fill the slots and rows that released sentences have left."""
        moves = self._table.compact(step=self._step)
        if moves.rows:
            sources, destinations, pasts = zip(*moves.rows, strict=True)
            source_rows, rows = self._ids(sources), self._ids(destinations)
            self._history.copy_rows(source_rows, rows, max(pasts))
            self._scores[rows] = self._scores[source_rows]
            self._next_tokens[rows] = self._next_tokens[source_rows]
            if self._phrases is not None:
                self._phrases[rows] = self._phrases[source_rows]
        self._network.move(moves)

    def _make_layout(self) -> Layout:
        slots = self._table.in_order()
        width = max(len(slot.rows) for slot in slots)
        places = [0] * self._table.num_rows
        started = [0] * self._table.num_rows
        for slot in slots:
            for index, row in enumerate(slot.rows):
                places[row] = slot.index * width + index
                started[row] = slot.started
        return Layout(
            slots=slots,
            groups=self._make_groups(slots, width, places),
            started=self._ids(started),
            with_attention=any(slot.search.with_alignment for slot in slots),
            allowed=None if self._shortlist is None else self._allowed(slots, self._shortlist),
            sampling=self._sampling(slots),
            automata=self._automata(slots),
            diversity=diversity_of(
                [slot.search for slot in slots],
                device=self._device,
                dtype=self._score_dtype,
            ),
        )

    def _automata(self, slots: list[Slot]) -> Automata | None:
        """What sentences have to contain; None where none has phrases."""
        if not any(slot.request.phrases for slot in slots):
            return None
        return automata_of([slot.request.phrases for slot in slots], self._device)

    def _sampling(self, slots: list[Slot]) -> RowSampling | None:
        """How rows are drawn; None where no sentence asks for it."""
        if all(slot.search.sampling is None for slot in slots):
            return None
        by_row = [(slots[0].search, 0)] * self._table.num_rows
        for slot in slots:
            for beam, row in enumerate(slot.rows):
                by_row[row] = (slot.search, beam)
        return row_sampling(by_row, self._device)

    def _allowed(self, slots: list[Slot], shortlist: Shortlist) -> list[npt.NDArray[np.int64]]:
        """The list of every row."""
        by_row = [np.empty(0, dtype=np.int64)] * self._table.num_rows
        for slot in slots:
            tokens = tokens_of_request(
                shortlist, slot.request, self._tokens, vocab_size=self._network.vocab_size
            )
            for row in slot.rows:
                by_row[row] = tokens
        return by_row

    def _make_groups(
        self, slots: list[Slot], width: int, places: list[int]
    ) -> beam_search.RowGroups:
        widths = [len(slot.rows) for slot in slots]
        padded = chain.from_iterable(
            [*slot.rows, *[0] * (width - len(slot.rows))] for slot in slots
        )
        candidates = [slot.search.candidates for slot in slots]
        return beam_search.RowGroups(
            rows=self._ids(list(padded)).view(len(slots), width),
            live=torch.arange(width, device=self._device) < self._ids(widths).unsqueeze(1),
            position=self._ids(places),
            widths=self._ids(widths),
            num_candidates=self._ids(candidates),
            max_candidates=max(candidates),
        )

    def _repeats(self, layout: Layout) -> Tensor | None:
        """(R, V) bool, by which tokens rows would repeat themselves; None where all may."""
        longest = max(slot.search.no_repeat_ngram for slot in layout.slots)
        if not longest:
            return None
        numbers = [(0, 0, 0)] * self._table.num_rows
        for slot in layout.slots:
            num_fed = slot.num_fed(self._step)
            start = num_fed - slot.num_generated(self._step)
            for row in slot.rows:
                numbers[row] = (start, num_fed, slot.search.no_repeat_ngram)
        starts, ends, sizes = (self._ids(column) for column in zip(*numbers, strict=True))
        return repeat_mask(
            self._history.tokens[: self._table.num_rows, : max(int(ends.max()), 1)],
            starts,
            ends,
            sizes,
            max_size=longest,
            vocab_size=self._network.vocab_size,
        )

    def _drawn(
        self, continuations: beam_search.RowContinuations, layout: Layout
    ) -> beam_search.RowContinuations:
        """The continuations, drawn for the rows of sentences that are sampled."""
        if layout.sampling is None:
            return continuations
        steps = [0] * self._table.num_rows
        for slot in layout.slots:
            for row in slot.rows:
                steps[row] = slot.num_generated(self._step)
        return sample(continuations, layout.sampling, self._ids(steps))

    def _force(
        self, continuations: beam_search.RowContinuations, layout: Layout
    ) -> tuple[beam_search.RowContinuations, Tensor | None, Tensor | None]:
        """Leave no choice where a token is forced.

        Returns:
            The continuations; what each row is forced to add, (R,) int64, −1 where it is free, or
            None if no row is forced; and which sentences are within their prefix, (S,) bool, or
            None if none is.
        """
        tokens = [-1] * self._table.num_rows
        for slot in layout.slots:
            token = forced_token(slot.request, self._tokens, slot.num_generated(self._step))
            if token is not None:
                for row in slot.rows:
                    tokens[row] = token
        forced = self._ids(tokens) if max(tokens) >= 0 else None
        if forced is not None:
            continuations = beam_search.force(continuations, forced)
        in_prefix = [slot.num_generated(self._step) < 0 for slot in layout.slots]
        endless = torch.tensor(in_prefix, device=self._device) if any(in_prefix) else None
        return continuations, forced, endless

    def _lexical(self, layout: Layout) -> LexicalStep | None:
        """What phrases do in the step; None where no sentence has any."""
        if layout.automata is None or self._phrases is None:
            return None
        nodes, met = self._phrases[: self._table.num_rows].unbind(1)
        return LexicalStep(automata=layout.automata, nodes=nodes, met=met)

    def _collect(
        self, candidates: beam_search.Candidates, decision: beam_search.Decision, layout: Layout
    ) -> None:
        """Keep the hypotheses that just ended, before their rows are given away."""
        for end in beam_search.ends_of(candidates, decision):
            slot = layout.slots[end.sentence]
            length = slot.num_generated(self._step) + 1
            score = hypothesis_score(end.log_prob_sum, length, slot.search.length_penalty)
            if slot.finished.can_keep(score, beam=end.beam):
                found = self._hypothesis(slot, slot.rows[end.beam], score, end.log_prob)
                slot.finished.keep(found, beam=end.beam)

    def _hypothesis(self, slot: Slot, row: int, score: float, log_prob: float) -> Hypothesis:
        num_generated = slot.num_generated(self._step)
        num_fed = slot.num_fed(self._step)
        past = slice(num_fed - num_generated, num_fed)
        alignment = None
        if slot.search.with_alignment:
            alignment = tuple(self._history.sources[row, past].tolist())
        token_ids = tuple(self._history.tokens[row, past].tolist())
        return Hypothesis(
            token_ids=token_ids,
            score=score,
            token_log_probs=(*self._history.log_probs[row, past].tolist(), log_prob),
            is_truncated=num_generated == slot.search.max_length - 1,
            alignment=alignment,
            num_missed=num_missed(slot.request.phrases, token_ids),
        )

    def _apply(self, decision: beam_search.Decision, positions: Tensor, layout: Layout) -> None:
        """Copy the pasts of second children, then write what every row adds."""
        num_rows = self._table.num_rows
        copies = decision.is_copy.nonzero().squeeze(1)
        if len(copies):
            parents = decision.parents[copies]
            num_past = max(slot.num_fed(self._step) for slot in layout.slots) + 1
            self._network.copy_rows(parents, copies, num_past)
            self._history.copy_rows(parents, copies, num_past)
        self._history.write(positions, decision.tokens, decision.log_probs)
        self._scores[:num_rows] = decision.scores
        self._next_tokens[:num_rows] = decision.tokens

    def _leave(self, decision: beam_search.Decision, layout: Layout) -> list[FinishedSentence]:
        """Release the sentences whose running hypotheses cannot enter the result any more."""
        finished = []
        for slot, best in zip(layout.slots, decision.best.tolist(), strict=True):
            num_generated = slot.num_generated(self._step)
            if num_generated >= 1 and slot.finished.is_over(best, num_generated):
                is_dead = -math.inf in best[: slot.search.num_groups]
                finished.append(self._finish(slot, may_hold_nan=is_dead))
        return finished

    def _finish(self, slot: Slot, *, may_hold_nan: bool) -> FinishedSentence:
        if may_hold_nan:  # rows have no finite score: at the cap all, or of numbers that are none
            self._network.leave(slot, slot.num_fed(self._step))
        self._remove(slot)
        return FinishedSentence(slot_id=slot.slot_id, hypotheses=slot.finished.best())
