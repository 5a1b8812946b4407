"""Learning rates as pure functions of the update number and of the fraction of the run used up.

Owns the shapes (Noam, inverse square root, cosine, an optional linear tail to zero). Does not own
the optimiser, nor whether a run is measured in updates or minutes (`model.train.loop.trainer`).
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from model.errors import ConfigError

ScheduleKind = Literal["noam", "inverse-sqrt", "cosine", "constant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleConfig:
    """A learning-rate schedule.

    Attributes:
        kind: "noam" is d_model^-0.5 · min(n^-0.5, n · warmup^-1.5) (Vaswani et al. 2017,
            section 5.3) times `factor`; "inverse-sqrt" rises linearly to `peak` and then falls
            as peak · √(warmup / n); "cosine" falls from `peak` to `floor` as half a cosine
            over the whole run (Loshchilov and Hutter 2017, equation 5, without restarts), the
            warm-up a line that multiplies its beginning; "constant" stays at the peak.
        peak: Learning rate at the end of the warm-up; not used by "noam".
        floor: Learning rate at the end of a "cosine"; not used by the others.
        factor: Multiplies "noam"; not used by the others.
        warmup_updates: Updates of linear warm-up.
        tail_fraction: Last part of the run over which the rate is also multiplied by a line
            from 1 to 0; 0 means no tail.
    """

    kind: ScheduleKind = "inverse-sqrt"
    peak: float = 1e-3
    floor: float = 0.0
    factor: float = 1.0
    warmup_updates: int = 4000
    tail_fraction: float = 0.0

    def __post_init__(self) -> None:
        """Reject impossible values, naming the value and the limit."""
        if self.kind not in get_args(ScheduleKind):
            choices = ", ".join(get_args(ScheduleKind))
            raise ConfigError(f"schedule.kind is {self.kind!r}; it must be one of {choices}")
        for name, value in (("peak", self.peak), ("factor", self.factor)):
            if not 0.0 < value < math.inf:
                raise ConfigError(f"schedule.{name} is {value}; it must be above 0, and finite")
        if not 0.0 <= self.floor <= self.peak:
            raise ConfigError(
                f"schedule.floor is {self.floor}; it must be from 0 to schedule.peak ({self.peak})"
            )
        if self.warmup_updates < 1:
            raise ConfigError(
                f"schedule.warmup_updates is {self.warmup_updates}; it must be at least 1"
            )
        if not 0.0 <= self.tail_fraction <= 1.0:
            raise ConfigError(
                f"schedule.tail_fraction is {self.tail_fraction}; it must be from 0 to 1"
            )


def learning_rate(
    config: ScheduleConfig, *, update: int, fraction: float = 0.0, d_model: int
) -> float:
    """Learning rate of one update.

    Args:
        config: The shape.
        update: Number of this update, n, from 1.
        fraction: Of the run, used up before this update, 0 to 1; "cosine" and the tail use it.
        d_model: Width of the network; only "noam" uses it.
    """
    warmup = config.warmup_updates
    rise = min(1.0, update / warmup)
    if config.kind == "noam":
        rate = (
            config.factor
            * min(1 / math.sqrt(update), update / math.sqrt(warmup) ** 3)
            / math.sqrt(d_model)
        )
    elif config.kind == "inverse-sqrt":
        # At the end of the warm-up both are 1.
        rate = config.peak * (rise if update <= warmup else math.sqrt(warmup / update))
    elif config.kind == "cosine":
        half = 0.5 * (1.0 + math.cos(math.pi * fraction))
        rate = rise * (config.floor + (config.peak - config.floor) * half)
    else:
        rate = config.peak * rise
    return rate * tail_factor(config.tail_fraction, fraction)


def tail_factor(tail_fraction: float, fraction: float) -> float:
    """Factor of the linear tail: 1 before it begins, 0 at the end of the run."""
    if tail_fraction == 0.0:
        return 1.0
    return min(1.0, max(0.0, 1.0 - fraction) / tail_fraction)
