"""Protocol of backends, which run the network and the search of a session's sentences.

Owns the protocol; decides nothing. Which backend a session gets is decided in `opening`, beside
which each of them has its file or folder.
"""

from collections.abc import Sequence
from typing import Protocol

from model.decode.attention import FloatArray
from model.decode.timing import StepPart
from model.request import DecodeRequest, FinishedSentence


class Backend(Protocol):
    """Running sentences: network, caches and search. The session admits only what fits."""

    def admit(self, slot_ids: Sequence[int], requests: Sequence[DecodeRequest]) -> None:
        """Encode sentences as one batch and let them take part from the next step on.

        If it raises, none of them does. A backend may let some wait for memory, see `num_waiting`:
        they join in a later step.

        Args:
            slot_ids: A new name for each.
            requests: The sentences.
        """
        ...

    def step(self) -> list[FinishedSentence]:
        """Extend every running hypothesis by one token; finished sentences leave."""
        ...

    def release(self, slot_id: int) -> None:
        """Drop a running sentence."""
        ...

    def written(self, slot_id: int) -> list[int]:
        """Tokens that the first beam of a running sentence has chosen so far, without its prefix.

        The only beam of a search never takes one back. A backend that works ahead may be behind.
        """
        ...

    def attention(
        self, request: DecodeRequest, hypotheses: Sequence[Sequence[int]]
    ) -> list[FloatArray]:
        """Weights (T, S) while the tokens of a sentence's hypotheses were chosen.

        Args:
            request: Of a sentence that has just ended: its places are free.
            hypotheses: Tokens of at most as many as it had beams, of each at least one.
        """
        ...

    def num_waiting(self) -> int:
        """Admitted sentences that wait until others have ended; no more are to be admitted then."""
        ...

    def num_encoded_tokens(self) -> int:
        """Source tokens encoded so far, what they were padded with included."""
        ...

    def step_seconds(self) -> dict[StepPart, float]:
        """Seconds spent in the parts of all steps so far."""
        ...

    def check_integrity(self) -> None:
        """Assert that what it keeps about rows and slots agrees."""
        ...
