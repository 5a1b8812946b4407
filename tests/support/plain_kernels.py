"""The int8 network without the search of its kernels: every next token's log probability."""

import numpy as np

from model.native import kernels
from model.native.network import Int8Network
from support.reference_search import NextLogProbs
from support.search_cases import TOKENS


def plain_network(network: Int8Network) -> NextLogProbs:
    """The whole prefix is fed again each time."""
    session = kernels.load(network.instruction_set).session(
        network.packed,
        network.team,
        max_rows=1,
        max_slots=1,
        max_source_length=16,
        max_target_length=38,
        eos_id=TOKENS.eos_id,
    )
    vocab_size = network.config.output_size

    def next_log_probs(source: list[int], prefix: list[int]) -> list[float]:
        one, zero = np.array([len(source)], dtype=np.int32), np.zeros(1, dtype=np.int64)
        session.encode(np.array(source, dtype=np.int32), one, zero.astype(np.int32))
        log_probs = np.empty((1, vocab_size), dtype=np.float32)
        best = np.empty((1, vocab_size), dtype=np.int64)
        for position, token in enumerate(prefix):
            at = np.array([position])
            session.feed(np.array([token]), zero, zero, at, log_probs, best, None)
        by_token = np.full(vocab_size, -np.inf)
        is_possible = ~np.isneginf(log_probs[0])
        by_token[best[0][is_possible]] = log_probs[0][is_possible]
        return by_token.tolist()

    return next_log_probs
