"""The `optimiser` part of an experiment file: Adam, the loss, clipping, averages of weights.

Owns the keys and their limits. What they do is `model.train.loop`; the learning rate is
`model.train.config.schedule`.
"""

import math
from dataclasses import dataclass

from model.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimiserConfig:
    """Adam, the loss, gradient clipping and the moving average of weights.

    Attributes:
        beta1: Decay of the mean of gradients.
        beta2: Decay of the mean of squares.
        epsilon: Added to the root of the mean of squares.
        weight_decay: Decoupled (AdamW); 0 is Adam.
        max_gradient_norm: Gradients are scaled down to this norm; 0 leaves them alone.
        label_smoothing: ε of the loss.
        rdrop_alpha: α of R-Drop (Liang et al. 2021): every pair passes twice with different
            dropout, and the two distributions are drawn together; 0 is one pass.
        ema_decay: The weights' moving average keeps so much of itself at every update; it is
            what dev text scores, and competes at the end. 0 keeps no such average.
    """

    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9
    weight_decay: float = 0.0
    max_gradient_norm: float = 1.0
    label_smoothing: float = 0.1
    rdrop_alpha: float = 0.0
    ema_decay: float = 0.0

    def __post_init__(self) -> None:
        """Reject impossible values."""
        for name in ("beta1", "beta2", "label_smoothing", "ema_decay"):
            value = getattr(self, name)
            if not 0.0 <= value < 1.0:
                raise ConfigError(f"optimiser.{name} is {value}; it must be in [0, 1)")
        for name in ("weight_decay", "max_gradient_norm", "rdrop_alpha"):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise ConfigError(f"optimiser.{name} is {value}; it must be at least 0, and finite")
        if not 0.0 < self.epsilon < math.inf:
            raise ConfigError(
                f"optimiser.epsilon is {self.epsilon}; it must be above 0, and finite"
            )
