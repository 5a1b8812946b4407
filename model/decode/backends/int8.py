"""The backend of the int8 kernels: one call a step, and Python only for what ends.

Owns which of the kernels' rows and slots are free, and the translation of requests and
hypotheses. Rows and slots stay where they are for a sentence's life.
"""

from collections.abc import Sequence
from heapq import heappop, heappush

from model.config import SpecialTokens
from model.decode.timing import STEP_PARTS, StepPart
from model.native import kernels
from model.native.network import Int8Network
from model.request import DecodeRequest, FinishedSentence, Hypothesis, SessionLimits


class NativeBackend:
    """A packed network and the kernels' caches."""

    def __init__(
        self, network: Int8Network, *, tokens: SpecialTokens, limits: SessionLimits
    ) -> None:
        """Reserve address space for the caches; memory follows as it is written.

        Raises:
            UnsupportedVariantError: The kernels are not there.
        """
        forced = tokens.forced_first_id
        self._session = kernels.load().session(
            network.packed,
            network.team,
            max_rows=limits.max_rows,
            max_slots=limits.max_slots,
            max_source_length=limits.max_source_length,
            max_target_length=limits.max_target_length,
            eos_id=tokens.eos_id,
            forced_first_id=-1 if forced is None else forced,
        )
        self._max_rows = limits.max_rows
        self._free_rows = list(range(limits.max_rows))
        self._free_slots = list(range(limits.max_slots))
        self._running: dict[int, tuple[int, list[int], DecodeRequest]] = {}
        self._num_encoded_tokens = 0

    def num_encoded_tokens(self) -> int:
        """Source tokens encoded so far; none of them is padding."""
        return self._num_encoded_tokens

    def step_seconds(self) -> dict[StepPart, float]:
        """Seconds spent in the parts of all steps so far."""
        return dict(zip(STEP_PARTS, self._session.seconds(), strict=True))

    def admit(self, slot_ids: Sequence[int], requests: Sequence[DecodeRequest]) -> None:
        """Encode sentences laid end to end, without padding; see `Backend.admit`."""
        for slot_id, request in zip(slot_ids, requests, strict=True):
            rows = [heappop(self._free_rows) for _ in range(request.search.beam_size)]
            self._running[slot_id] = (heappop(self._free_slots), rows, request)
        try:
            self._session.admit([self._described(slot_id) for slot_id in slot_ids])
        except BaseException:
            for slot_id in slot_ids:
                self._free(slot_id)
            raise
        self._num_encoded_tokens += sum(len(request.source_ids) for request in requests)

    def _described(self, slot_id: int) -> "kernels.Request":
        slot, rows, request = self._running[slot_id]
        search = request.search
        return (
            slot_id,
            slot,
            rows,
            list(request.source_ids),
            list(request.prefix_ids),
            search.candidates,
            search.num_hypotheses,
            search.max_length,
            search.length_penalty,
            search.stopping,
            search.with_alignment,
        )

    def step(self) -> list[FinishedSentence]:
        """Extend every running hypothesis by one token; finished sentences leave."""
        finished = []
        for slot_id, found in self._session.step():
            request = self._free(slot_id)
            finished.append(
                FinishedSentence(
                    slot_id=slot_id,
                    hypotheses=tuple(
                        Hypothesis(
                            token_ids=token_ids,
                            score=score,
                            token_log_probs=log_probs,
                            is_truncated=is_truncated,
                            alignment=sources if request.search.with_alignment else None,
                        )
                        for token_ids, score, log_probs, is_truncated, sources in found
                    ),
                )
            )
        return finished

    def release(self, slot_id: int) -> None:
        """Drop a running sentence."""
        self._free(slot_id)
        self._session.release(slot_id)

    def check_integrity(self) -> None:
        """Assert that every row is free or in one sentence."""
        rows = [row for _, used, _ in self._running.values() for row in used]
        assert sorted([*rows, *self._free_rows]) == list(range(self._max_rows))

    def _free(self, slot_id: int) -> DecodeRequest:
        slot, rows, request = self._running.pop(slot_id)
        heappush(self._free_slots, slot)
        for row in rows:
            heappush(self._free_rows, row)
        return request
