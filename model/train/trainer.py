"""The training loop: batches in, updates out.

Owns one update (accumulate, clip, step) and the loop around it. Does not own text, files, dev
scores or progress lines: those are the `Observer`'s.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import clip_grad_norm_

from model.errors import TrainingError
from model.nn.masks import padding_mask
from model.nn.transformer import Transformer
from model.train.batching import Batch, BatchStream
from model.train.distributed import Group
from model.train.experiment import OptimiserConfig, Precision, RunConfig
from model.train.loss import IGNORED, label_smoothed_loss, projected_loss
from model.train.schedule import ScheduleConfig, learning_rate
from model.train.state import Progress

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateResult:
    """What one update was.

    Attributes:
        update: Its number, from 1.
        epoch: The epoch its last batch came from, from 0.
        loss: Smoothed cross-entropy per target token, in nats.
        gradient_norm: Before clipping.
        learning_rate: Used for it.
        num_source_tokens: Without padding.
        num_target_tokens: Without padding.
    """

    update: int
    epoch: int
    loss: float
    gradient_norm: float
    learning_rate: float
    num_source_tokens: int
    num_target_tokens: int


class Observer(Protocol):
    """What happens around the updates."""

    def after_update(self, result: UpdateResult, progress: Progress, fraction: float) -> Progress:
        """Log, save, score; returns the progress, with a new best score if there is one.

        Args:
            result: Of the update just done.
            progress: Of the run, that update included.
            fraction: Part of the run used up.
        """
        ...


class SilentObserver:
    """Does nothing: what all workers but the first have."""

    def after_update(self, result: UpdateResult, progress: Progress, fraction: float) -> Progress:  # noqa: ARG002  # the protocol's
        """Give the progress back."""
        return progress


def build_optimiser(transformer: Transformer, config: OptimiserConfig) -> torch.optim.Adam:
    """Adam, or AdamW when there is weight decay; its learning rate is set by every update."""
    return torch.optim.Adam(
        transformer.parameters(),
        lr=0.0,
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        weight_decay=config.weight_decay,
        decoupled_weight_decay=True,
        fused=True,
    )


@contextmanager
def compute_context(device: torch.device, precision: Precision) -> Iterator[None]:
    """The precision of a run, and on a CPU the attention kernel that trains fastest.

    torch's fused CPU kernel is slower in bfloat16 than the plain formula: at 60 x 20 tokens and
    4 heads forward and backward take 25 ms against 9 ms on one core.
    """
    contexts: list[AbstractContextManager[None]] = []
    if precision == "bfloat16":
        contexts.append(torch.autocast(device.type, torch.bfloat16))
        if device.type == "cpu":
            contexts.append(sdpa_kernel(SDPBackend.MATH))
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        yield


def batch_loss(transformer: Transformer, batch: Batch, *, smoothing: float) -> Tensor:
    """Sum of the smoothed cross-entropies of a batch, over labels that are not padding.

    When training on a CPU, the output projection and the loss are one function that never holds
    all logits.
    """
    source_mask = padding_mask(batch.source_ids, transformer.config.pad_id)
    memory = transformer.encode(batch.source_ids, source_mask)
    projection, bias = transformer.output_projection, transformer.output_bias
    weight = transformer.target_embedding.weight if projection is None else projection.weight
    if batch.labels.device.type != "cpu" or not torch.is_grad_enabled():
        logits = transformer.decode(batch.target_ids, memory, source_mask)
        return label_smoothed_loss(logits.to(weight.dtype), batch.labels, smoothing=smoothing)
    hidden = transformer.decoder(transformer.embed_target(batch.target_ids), memory, source_mask)
    is_real = batch.labels != IGNORED
    is_low = torch.is_autocast_enabled("cpu")
    return projected_loss(
        hidden[is_real].to(weight.dtype),
        weight,
        weight.new_zeros(len(weight)) if bias is None else bias,
        batch.labels[is_real],
        smoothing=smoothing,
        compute_dtype=torch.bfloat16 if is_low else weight.dtype,
        fixed_id=transformer.config.pad_id if projection is None else None,
    )


class Trainer:
    """Trains a network on a stream of batches.

    Args:
        transformer: The network, on its device.
        optimiser: From `build_optimiser`.
        stream: Batches.
        optimiser_config: Clipping and smoothing.
        schedule: Learning rate.
        run: Length and batches per update.
        clock: Seconds, only ever going up.
        progress: Where to begin.
        group: The workers that train together.
    """

    def __init__(
        self,
        transformer: Transformer,
        optimiser: torch.optim.Optimizer,
        stream: BatchStream,
        *,
        optimiser_config: OptimiserConfig,
        schedule: ScheduleConfig,
        run: RunConfig,
        clock: Clock,
        progress: Progress | None = None,
        group: Group | None = None,
    ) -> None:
        self._transformer = transformer
        self._optimiser = optimiser
        self._stream = stream
        self._optimiser_config = optimiser_config
        self._schedule = schedule
        self._run = run
        self._clock = clock
        self._device = next(transformer.parameters()).device
        self._group = group or Group()
        self.progress = progress or Progress()

    def fraction(self) -> float:
        """Part of the run used up, 0 to 1: of its updates or its minutes, whichever is more."""
        parts = [0.0]
        if self._run.max_updates:
            parts.append(self.progress.update / self._run.max_updates)
        if self._run.max_minutes:
            parts.append(self.progress.elapsed_seconds / (60.0 * self._run.max_minutes))
        return min(1.0, max(parts))

    def train(self, observer: Observer, *, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Update until the run is over or `should_stop` says so, between updates.

        What the observer does (saving, scoring) is not counted as training time.

        Raises:
            TrainingError: The loss is no longer finite.
        """
        while self._goes_on(should_stop):
            started = self._clock()
            result = self.update([next(self._stream) for _ in range(self._run.update_freq)])
            elapsed = self._group.agree(self._clock() - started, self._device)
            done = self.progress
            self.progress = replace(
                done,
                update=result.update,
                position=self._stream.position,
                elapsed_seconds=done.elapsed_seconds + elapsed,
                num_source_tokens=done.num_source_tokens + result.num_source_tokens,
                num_target_tokens=done.num_target_tokens + result.num_target_tokens,
            )
            self.progress = observer.after_update(result, self.progress, self.fraction())

    def _goes_on(self, should_stop: Callable[[], bool]) -> bool:
        is_going_on = self.fraction() < 1.0 and not should_stop()
        return bool(self._group.agree(float(is_going_on), self._device))

    def update(self, batches: Sequence[Batch]) -> UpdateResult:
        """One update from the exact gradient of all `batches` together.

        Raises:
            TrainingError: The loss or the gradient is not finite; no weight has changed.
        """
        self._transformer.train()
        update = self.progress.update + 1
        rate = learning_rate(
            self._schedule,
            update=update,
            progress=self.fraction(),
            d_model=self._transformer.config.d_model,
        )
        num_target = sum(batch.num_target_tokens for batch in batches)
        self._group.seed_dropout(self._run.seed, update)
        loss = self.accumulate(batches)
        norm = self._clip()
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise TrainingError(
                f"update {update}: loss {loss}, gradient norm {norm}; the run has diverged"
                f" (learning rate {rate:.3g})"
            )
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
        return UpdateResult(
            update=update,
            epoch=self._stream.position.epoch,
            loss=loss,
            gradient_norm=norm,
            learning_rate=rate,
            num_source_tokens=sum(batch.num_source_tokens for batch in batches),
            num_target_tokens=num_target,
        )

    def accumulate(self, batches: Sequence[Batch]) -> float:
        """Make the gradient of the mean loss over all target tokens of `batches`.

        Every batch's summed loss is divided by the tokens of all of them, so that the result
        does not depend on how sentences are cut into batches, nor on how many workers share
        the batches.

        Returns:
            The mean loss per target token, in nats.
        """
        num_target = sum(batch.num_target_tokens for batch in batches)
        smoothing = self._optimiser_config.label_smoothing
        total = 0.0
        for batch in self._group.deal(batches):
            with compute_context(self._device, self._run.precision):
                loss = batch_loss(self._transformer, batch.to(self._device), smoothing=smoothing)
            (loss / num_target).backward()  # type: ignore[no-untyped-call]  # torch's own
            total += loss.item()
        self._group.sum_gradients(self._transformer.parameters())
        return self._group.sum(total, self._device) / num_target

    def _clip(self) -> float:
        limit = self._optimiser_config.max_gradient_norm or math.inf
        return clip_grad_norm_(self._transformer.parameters(), limit).item()
