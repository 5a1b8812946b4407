"""A held-out corpus that a run is scored on.

Does not own how it is read (`model.train.data.reading`), nor its scores
(`model.train.loop.validation`).
"""

from dataclasses import dataclass

from model.text.languages.tags import LanguagePair
from model.train.data.parallel import ParallelText, TokenisedPairs


@dataclass(frozen=True, slots=True, kw_only=True)
class DevText:
    """A held-out corpus, as text and as tokens.

    Attributes:
        text: Its lines.
        pairs: Its tokens, for the loss: without pairs that have a side that is empty when
            normalised, or too long to train on.
        pair: Its direction.
        is_choosing: It is the first of its direction, which chooses the best weights.
    """

    text: ParallelText
    pairs: TokenisedPairs
    pair: LanguagePair
    is_choosing: bool

    @property
    def num_left_out(self) -> int:
        """Pairs that the dev loss leaves out; BLEU and chrF are of all."""
        return len(self.text) - len(self.pairs)
