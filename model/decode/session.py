"""Continuous decoding: sentences are admitted, stepped and released, each whenever it likes.

Owns what may run at once and the names of what runs. The search and the network below it are a
`Backend`'s. One session belongs to one thread.
"""

from collections.abc import Callable, Sequence
from functools import partial

from model.config import SpecialTokens
from model.decode.attention import with_attention
from model.decode.backends.base import Backend
from model.decode.backends.opening import Network, open_backend
from model.decode.timing import StepPart
from model.errors import CapacityError
from model.request import DecodeRequest, FinishedSentence, Hypothesis, SessionLimits
from model.shortlist import Shortlist

__all__ = [
    "DecodeRequest",
    "DecodingSession",
    "FinishedSentence",
    "Hypothesis",
    "SessionLimits",
]


class DecodingSession:
    """A network, its caches, and the sentences running through it."""

    def __init__(
        self,
        network: Network,
        *,
        tokens: SpecialTokens,
        limits: SessionLimits,
        shortlist: Shortlist | None = None,
        opener: Callable[..., Backend] = open_backend,
    ) -> None:
        """Allocate the caches on the network's device, in its precision.

        Args:
            network: A `Transformer` in evaluation mode, or one packed as int8; its weights must
                not change afterwards.
            tokens: The vocabulary's special tokens.
            limits: What to allocate for.
            shortlist: What every sentence may choose by its source tokens; None: all tokens.
            opener: Makes the backend, called as `open_backend` is, which chooses by the network;
                with a shortlist only if there is one.

        Raises:
            UnsupportedVariantError: A shortlist is asked for where the backend honours none.
        """
        if shortlist is not None:
            opener = partial(opener, shortlist=shortlist)
        self._limits = limits
        self._backend = opener(network, tokens=tokens, limits=limits)
        self._beam_sizes: dict[int, int] = {}  # of running sentences, by slot id
        self._attended: dict[int, DecodeRequest] = {}  # running, that ask for attention
        self._num_rows = 0
        self._next_id = 0

    def __repr__(self) -> str:
        return (
            f"DecodingSession(slots={self.num_slots}/{self._limits.max_slots},"
            f" rows={self.num_rows}/{self._limits.max_rows})"
        )

    @property
    def num_slots(self) -> int:
        """Sentences running, with those that were admitted and wait for memory."""
        return len(self._beam_sizes)

    @property
    def num_rows(self) -> int:
        """Rows in use."""
        return self._num_rows

    @property
    def free_slots(self) -> int:
        """Sentences that may still be admitted; none while some wait for memory."""
        return 0 if self._backend.num_waiting() else self._limits.max_slots - self.num_slots

    @property
    def free_rows(self) -> int:
        """Rows that may still be taken; none while sentences wait for memory."""
        return 0 if self._backend.num_waiting() else self._limits.max_rows - self.num_rows

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs."""
        return not self._beam_sizes

    @property
    def num_encoded_tokens(self) -> int:
        """Source tokens encoded so far, what they were padded with included."""
        return self._backend.num_encoded_tokens()

    def admit(self, requests: Sequence[DecodeRequest]) -> list[int]:
        """Encode sentences as one batch and give each a slot.

        Args:
            requests: Sentences; similar lengths waste less padding where there is any.

        Returns:
            A slot id for each, never used twice.

        Raises:
            CapacityError: If they do not fit; nothing is admitted then.
        """
        self._check_capacity(requests)
        if not requests:
            return []
        slot_ids = list(range(self._next_id, self._next_id + len(requests)))
        self._backend.admit(slot_ids, requests)
        self._next_id += len(requests)
        for slot_id, request in zip(slot_ids, requests, strict=True):
            self._beam_sizes[slot_id] = request.search.beam_size
            self._num_rows += request.search.beam_size
            if request.search.with_attention:
                self._attended[slot_id] = request
        return slot_ids

    def release(self, slot_id: int) -> None:
        """Drop a sentence; one that is not running (any more) is ignored."""
        if slot_id in self._beam_sizes:
            self._forget(slot_id)
            self._backend.release(slot_id)

    def step(self) -> list[FinishedSentence]:
        """Extend every running hypothesis by one token.

        Returns:
            The sentences whose search ended; their slots are free again.
        """
        if self.is_idle:
            return []
        finished = self._backend.step()
        if self._attended:
            finished = [self._with_attention(sentence) for sentence in finished]
        for sentence in finished:
            self._forget(sentence.slot_id)
        return finished

    def written(self, slot_id: int) -> list[int]:
        """Tokens that a running sentence has so far, as far as they are known already.

        What stands here stays, and is what the hypothesis of the sentence begins with.

        Args:
            slot_id: Of a sentence with one beam: of several, none is the result before the end.
        """
        assert self._beam_sizes[slot_id] == 1
        return self._backend.written(slot_id)

    def step_seconds(self) -> dict[StepPart, float]:
        """Seconds spent in the parts of all steps so far."""
        return self._backend.step_seconds()

    def check_integrity(self) -> None:
        """Assert that slots, rows and counts agree."""
        assert sum(self._beam_sizes.values()) == self._num_rows <= self._limits.max_rows
        assert self.num_slots <= self._limits.max_slots
        self._backend.check_integrity()

    def _with_attention(self, sentence: FinishedSentence) -> FinishedSentence:
        request = self._attended.get(sentence.slot_id)
        if request is None:
            return sentence
        return with_attention(sentence, request, self._backend.attention)

    def _forget(self, slot_id: int) -> None:
        self._attended.pop(slot_id, None)
        self._num_rows -= self._beam_sizes.pop(slot_id)

    def _check_capacity(self, requests: Sequence[DecodeRequest]) -> None:
        limits = self._limits
        num_rows = sum(request.search.beam_size for request in requests)
        if len(requests) > self.free_slots or num_rows > self.free_rows:
            raise CapacityError(
                f"{len(requests)} sentences with {num_rows} rows do not fit into"
                f" {self.free_slots} free slots and {self.free_rows} free rows"
            )
        for request in requests:
            length, prefix = len(request.source_ids), len(request.prefix_ids)
            if not 1 <= length <= limits.max_source_length:
                raise CapacityError(
                    f"a source has {length} tokens; it may have 1 to {limits.max_source_length}"
                )
            target = prefix + request.search.max_length
            if prefix < 1 or target > limits.max_target_length:
                raise CapacityError(
                    f"a prefix of {prefix} and max_length {request.search.max_length} need"
                    f" {target} target tokens; the session has {limits.max_target_length}"
                )
