"""One running sentence of the plain backend: its beams so far, and what of it has finished.

Owns the tensors of a sentence's beams and how one of them becomes a hypothesis. How beams go on is
`model.decode.backends.plain.backend`.
"""

from dataclasses import dataclass

from torch import Tensor

from model.config import SearchConfig
from model.decode.finished import FinishedHypotheses
from model.phrases import num_missed
from model.request import DecodeRequest, Hypothesis


@dataclass(slots=True, kw_only=True)
class RunningSentence:
    """One running sentence of K beams whose next input is target token t.

    Attributes:
        slot_id: The session's name for it.
        request: What was asked.
        encoded: (S, D) encoder output.
        tokens: (K, t) int64, target tokens so far, the prefix included.
        log_probs: (K, t − 1) log probability of each of them but the first.
        sources: (K, t − 1) int64, the source position most attended to when it was chosen.
        scores: (K,) sums of log probabilities; -inf marks a beam without hypothesis.
        phrases: (2, K) int64, how far each beam has come with its phrases: nodes, and those met.
        finished: Kept hypotheses.
    """

    slot_id: int
    request: DecodeRequest
    encoded: Tensor
    tokens: Tensor
    log_probs: Tensor
    sources: Tensor
    scores: Tensor
    phrases: Tensor
    finished: FinishedHypotheses

    @property
    def search(self) -> SearchConfig:
        """How this sentence is searched."""
        return self.request.search

    @property
    def length(self) -> int:
        """Target tokens so far, t."""
        return self.tokens.shape[1]

    @property
    def num_generated(self) -> int:
        """Tokens chosen so far; negative within the prefix."""
        return self.length - len(self.request.prefix_ids)

    def hypothesis(self, beam: int, score: float, log_prob: float) -> Hypothesis:
        """What one beam has generated, and the EOS that ends it."""
        prefix = len(self.request.prefix_ids)
        alignment = None
        if self.search.with_alignment:
            alignment = tuple(self.sources[beam, prefix - 1 :].tolist())
        token_ids = tuple(self.tokens[beam, prefix:].tolist())
        return Hypothesis(
            token_ids=token_ids,
            score=score,
            token_log_probs=(*self.log_probs[beam, prefix - 1 :].tolist(), log_prob),
            is_truncated=self.num_generated == self.search.max_length - 1,
            alignment=alignment,
            num_missed=num_missed(self.request.phrases, token_ids),
        )
