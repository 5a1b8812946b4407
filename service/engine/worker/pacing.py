"""Pacing of the encoder: the tokens that take about as long to encode as a few decoding steps.

Owns the estimate and nothing else: it learns how long encoder batches and steps took, and
reads no clock. What the budget is used for is `service.engine.worker.scheduler`.
"""

PAUSE_STEPS = 2.0
"""Encoding may keep running segments waiting for about as long as this many steps."""
MIN_TOKEN_BUDGET = 64
"""A few sentences may always be encoded together: below that there is nothing to batch."""


class Pacing:
    """Recent speeds: encoder tokens per second, and seconds per step.

    Both are exponentially weighted: a measurement counts `weight`, those before it together the
    rest. Tokens and seconds are weighted apart, so a large batch says more than a small one. An
    encoder batch also has costs that do not grow with its tokens; with them the budget settles
    where a full batch takes just the pause, because that is where budget × seconds per token is
    the pause again.

    Where work is only launched, on a GPU, what is measured is how long launching took, which says
    nothing of the work: there the budget is always its ceiling, which such a device encodes in
    about the time of a step over many rows.

    Args:
        is_launched: Times are those of launching.
        pause_steps: Steps' worth of time that one encoder batch may take.
        min_token_budget: The floor, however slow the encoder is.
        weight: Of the latest measurement, in (0, 1].
    """

    def __init__(
        self,
        *,
        is_launched: bool = False,
        pause_steps: float = PAUSE_STEPS,
        min_token_budget: int = MIN_TOKEN_BUDGET,
        weight: float = 0.1,
    ) -> None:
        self._is_launched = is_launched
        self._pause_steps = pause_steps
        self._min_token_budget = min_token_budget
        self._weight = weight
        self._encoder_tokens = 0.0
        self._encoder_seconds = 0.0
        self._step_seconds = 0.0
        self._has_encoded = False
        self._has_stepped = False

    def __repr__(self) -> str:
        return (
            f"<Pacing {self._encoder_tokens:.0f} tokens in {self._encoder_seconds:.4f} s,"
            f" a step in {self._step_seconds:.4f} s>"
        )

    def encoded(self, num_tokens: int, *, seconds: float) -> None:
        """An encoder batch of `num_tokens` padded source tokens took `seconds`."""
        weight = self._weight if self._has_encoded else 1.0
        self._encoder_tokens += weight * (num_tokens - self._encoder_tokens)
        self._encoder_seconds += weight * (seconds - self._encoder_seconds)
        self._has_encoded = True

    def stepped(self, *, seconds: float) -> None:
        """A decoding step took `seconds`."""
        weight = self._weight if self._has_stepped else 1.0
        self._step_seconds += weight * (seconds - self._step_seconds)
        self._has_stepped = True

    def token_budget(self, *, ceiling: int) -> int:
        """Padded source tokens of the next encoder batch, at most `ceiling`.

        It is `ceiling` itself until both have been measured, and where neither can be.
        """
        if self._is_launched or self._encoder_seconds <= 0.0 or not self._has_stepped:
            return ceiling
        tokens_per_second = self._encoder_tokens / self._encoder_seconds
        affordable = int(tokens_per_second * self._pause_steps * self._step_seconds)
        return min(ceiling, max(affordable, self._min_token_budget))
