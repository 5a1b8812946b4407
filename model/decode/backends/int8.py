"""The backend of the int8 kernels: one call a step, and Python only for what ends.

Owns which of the kernels' rows and slots are free; they stay where they are for a sentence's life.
Requests and hypotheses are those of `model.request`, which the kernels read and make themselves.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from model.config import SpecialTokens
from model.decode.attention import FloatArray, fed_tokens
from model.decode.timing import STEP_PARTS, StepPart
from model.decode.token_checks import check_tokens
from model.native import kernels
from model.native.network import Int8Network
from model.request import DecodeRequest, FinishedSentence, SessionLimits
from model.shortlist import Shortlist

if TYPE_CHECKING:
    from model.native import _kernels


class Int8Backend:
    """A packed network and the kernels' caches."""

    def __init__(
        self,
        network: Int8Network,
        *,
        tokens: SpecialTokens,
        limits: SessionLimits,
        shortlist: Shortlist | None = None,
    ) -> None:
        """Reserve address space for the caches; memory follows as it is written.

        With a shortlist the output projection is kept a second time, output by output.

        Raises:
            UnsupportedVariantError: The kernels are not there.
        """
        forced = tokens.forced_first_id
        module = kernels.load(network.instruction_set)
        self._session = module.session(
            network.packed,
            network.team,
            max_rows=limits.max_rows,
            max_slots=limits.max_slots,
            max_source_length=limits.max_source_length,
            max_target_length=limits.max_target_length,
            eos_id=tokens.eos_id,
            forced_first_id=-1 if forced is None else forced,
            shortlist=None if shortlist is None else _packed(module, network, shortlist),
        )
        self._tokens = tokens
        self._vocab_size = network.config.output_size
        self._max_rows = limits.max_rows
        self._free_rows = list(range(limits.max_rows))
        self._free_slots = list(range(limits.max_slots))
        self._running: dict[int, tuple[int, list[int]]] = {}
        self._num_encoded_tokens = 0

    def attention(
        self, request: DecodeRequest, hypotheses: Sequence[Sequence[int]]
    ) -> list[FloatArray]:
        """Weights (T, S) by one pass for all, a row each, in free places; see `Backend.attention`.

        The longest go first, so that those that still have tokens are the first rows.
        """
        order = sorted(range(len(hypotheses)), key=lambda one: -len(hypotheses[one]))
        fed = [fed_tokens(request, hypotheses[one]) for one in order]
        rows = np.array(self._free_rows[: len(fed)])
        slot, source = self._free_slots[0], np.array(request.source_ids, dtype=np.int32)
        self._session.encode(
            source, np.array([len(source)], dtype=np.int32), np.array([slot], dtype=np.int32)
        )
        weights = [np.zeros((len(tokens), len(source)), dtype=np.float32) for tokens in fed]
        for position in range(len(fed[0])):
            tokens = np.array([one[position] for one in fed if position < len(one)])
            num = len(tokens)
            attended = np.zeros((num, len(source)), dtype=np.float32)
            self._session.feed(
                tokens,
                rows[:num],
                np.full(num, slot),
                np.full(num, position),
                np.zeros((num, 1), dtype=np.float32),
                np.zeros((num, 1), dtype=np.int64),
                np.zeros(num, dtype=np.int64),
                attended,
            )
            for own, one in zip(weights, attended, strict=False):
                own[position] = one
        found = dict(zip(order, weights, strict=True))
        return [found[one][-len(hypotheses[one]) :] for one in range(len(hypotheses))]

    def num_encoded_tokens(self) -> int:
        """Source tokens encoded so far; none of them is padding."""
        return self._num_encoded_tokens

    def num_waiting(self) -> int:
        """None: what a session lets run has its caches from the start."""
        return 0

    def step_seconds(self) -> dict[StepPart, float]:
        """Seconds spent in the parts of all steps so far."""
        return dict(zip(STEP_PARTS, self._session.seconds(), strict=True))

    def admit(self, slot_ids: Sequence[int], requests: Sequence[DecodeRequest]) -> None:
        """Encode sentences laid end to end, without padding; see `Backend.admit`."""
        with_phrases = [request for request in requests if request.phrases]
        check_tokens(with_phrases, vocab_size=self._vocab_size, tokens=self._tokens)
        all_rows, slots = [], []
        for slot_id, request in zip(slot_ids, requests, strict=True):
            rows = [heappop(self._free_rows) for _ in range(request.search.beam_size)]
            slot = heappop(self._free_slots)
            self._running[slot_id] = (slot, rows)
            all_rows.append(rows)
            slots.append(slot)
        try:
            self._session.admit(names=slot_ids, slots=slots, rows=all_rows, requests=list(requests))
        except BaseException:
            for slot_id in slot_ids:
                self._free(slot_id)
            raise
        self._num_encoded_tokens += sum(len(request.source_ids) for request in requests)

    def step(self) -> list[FinishedSentence]:
        """Extend every running hypothesis by one token; finished sentences leave."""
        finished = self._session.step()
        for sentence in finished:
            self._free(sentence.slot_id)
        return finished

    def release(self, slot_id: int) -> None:
        """Drop a running sentence."""
        self._free(slot_id)
        self._session.release(slot_id)

    def written(self, slot_id: int) -> list[int]:
        """Tokens of a running sentence's first beam; see `Backend.written`."""
        return self._session.written(slot_id)

    def check_integrity(self) -> None:
        """Assert that every row is free or in one sentence."""
        rows = [row for _, used in self._running.values() for row in used]
        assert sorted([*rows, *self._free_rows]) == list(range(self._max_rows))

    def _free(self, slot_id: int) -> None:
        slot, rows = self._running.pop(slot_id)
        heappush(self._free_slots, slot)
        for row in rows:
            heappush(self._free_rows, row)


def _packed(
    module: kernels.Kernels, network: Int8Network, shortlist: Shortlist
) -> "_kernels.Shortlist":
    """A shortlist as the kernels hold it, with the network's output projection row by row."""
    return module.shortlist(
        network.packed,
        always=shortlist.always,
        offsets=shortlist.offsets,
        ids=shortlist.ids,
        with_source=shortlist.with_source,
    )
