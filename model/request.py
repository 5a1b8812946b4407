"""Requests of a search and its hypotheses: the same types from the API's edge to the backends.

Owns requests, hypotheses and a session's limits; loads no torch. A request and a hypothesis are
msgspec structs, because they cross the socket to the engine inside its messages and decode
strictly there: an unknown field is refused. Who waits for a request, and in which class, is said
by the envelopes around it (`service.engine.messages`).
"""

from dataclasses import dataclass

import msgspec

from model.config import SearchConfig
from model.phrases import Alternatives

MAX_ATTENTION_WEIGHTS = 16_384
"""Of one hypothesis: 128 tokens of either side, 32 KiB."""


class DecodeRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One sentence to translate.

    Attributes:
        source_ids: Source tokens, EOS included.
        prefix_ids: What the decoder is fed before it may choose: the start token, then forced
            language tags. Neither scored nor counted in the length.
        search: How to search.
        suppressed_ids: Target tokens that this sentence's search never chooses; what is forced
            (the prefix, EOS at the cap) comes all the same.
        forced_ids: What the translation begins with, behind the prefix and a forced first token:
            tokens of every hypothesis that cost nothing, and count in its length.
        phrases: What the translation has to contain, in any order: of each phrase one of its
            alternatives. No hypothesis ends before all are met, or the cap is reached.
    """

    source_ids: tuple[int, ...]
    prefix_ids: tuple[int, ...]
    search: SearchConfig
    suppressed_ids: tuple[int, ...] = ()
    forced_ids: tuple[int, ...] = ()
    phrases: tuple[Alternatives, ...] = ()


class Hypothesis(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A finished translation.

    Attributes:
        token_ids: Without prefix and without EOS.
        score: s / n^α, n counting EOS.
        token_log_probs: One a token, and EOS's at the end; 0 where it was forced.
        is_truncated: The cap was reached and EOS forced.
        alignment: For each token the source token attended to most, if asked for.
        attention: (T, S) as float16, row by row, little-endian: how much each token attended to
            each source token in the last layer, on the average of heads; if asked for, and within
            `MAX_ATTENTION_WEIGHTS`.
        num_missed: Phrases of the request that are not in it; those that miss fewer go first.
    """

    token_ids: tuple[int, ...]
    score: float
    token_log_probs: tuple[float, ...]
    is_truncated: bool
    alignment: tuple[int, ...] | None = None
    attention: bytes | None = None
    num_missed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSentence:
    """A sentence that left the session by itself.

    Attributes:
        slot_id: What `admit` returned for it.
        hypotheses: Best first, as many as asked for if the search found them; empty when the
            network gave no finite score.
    """

    slot_id: int
    hypotheses: tuple[Hypothesis, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """Limits that a session allocates for.

    Attributes:
        max_rows: Beam rows over all sentences.
        max_slots: Sentences.
        max_source_length: Source tokens of one sentence, EOS included.
        max_target_length: Target tokens of one sentence, prefix and EOS included.
    """

    max_rows: int
    max_slots: int
    max_source_length: int
    max_target_length: int
