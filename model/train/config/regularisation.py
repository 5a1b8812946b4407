"""Settings of subword regularisation: how other segmentations of a sentence are drawn.

Does not own the drawing, which is `model.train.data.subwords`.
"""

from dataclasses import dataclass

from model.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class RegularisationConfig:
    """Settings of subword sampling.

    Attributes:
        alpha: BPE: the probability that a merge is left out. Unigram: the power of a
            segmentation's probability; smaller is more random.
        nbest_size: Unigram only: draw among so many best segmentations of a word; -1 for all,
            and for BPE.
        is_source_drawn: Draw for the source.
        is_target_drawn: Draw for the target.
    """

    alpha: float = 0.1
    nbest_size: int = -1
    is_source_drawn: bool = True
    is_target_drawn: bool = True

    def __post_init__(self) -> None:
        """Reject what cannot be drawn from."""
        if not 0.0 < self.alpha <= 1.0:
            raise ConfigError(
                f"data.regularisation.alpha is {self.alpha}; it must be above 0 and at most 1"
            )
        if self.nbest_size != -1 and not 2 <= self.nbest_size <= 512:
            raise ConfigError(
                f"data.regularisation.nbest_size is {self.nbest_size}; it must be -1, or from 2"
                " to 512"
            )
