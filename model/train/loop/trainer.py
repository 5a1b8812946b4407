"""The training loop: batches in, updates out.

Owns one update (accumulate, clip, step, or skip) and the loop around it. Does not own text, files,
dev scores or progress lines: those are the `Observer`'s.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from model.nn.transformer import Transformer
from model.train.config.optimiser import OptimiserConfig
from model.train.config.run import RunConfig
from model.train.config.schedule import ScheduleConfig, learning_rate
from model.train.data.batching import Batch, BatchPosition, BatchStream
from model.train.loop.distributed import Group
from model.train.loop.memory import naming_batches
from model.train.loop.objective import batch_loss, compiled_stacks, compute_context, plain_stacks
from model.train.loop.precision import precision_on
from model.train.loop.working_copy import WorkingCopy, in_bfloat16
from model.train.saved.averaging import MovingAverage
from model.train.saved.state import Progress
from model.train.stopping import ShouldStop, never

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateResult:
    """Figures of one update.

    Attributes:
        update: Its number, from 1.
        epoch: The epoch its last batch came from, from 0.
        loss: Smoothed cross-entropy per target token (with R-Drop: `paired_loss`), in nats.
        gradient_norm: Before clipping.
        learning_rate: Used for it.
        num_source_tokens: Without padding.
        num_target_tokens: Without padding.
        is_skipped: Loss or gradient was not finite, so no weight has changed.
    """

    update: int
    epoch: int
    loss: float
    gradient_norm: float
    learning_rate: float
    num_source_tokens: int
    num_target_tokens: int
    is_skipped: bool = False


class Observer(Protocol):
    """Interface of the work around updates."""

    def after_update(self, result: UpdateResult, progress: Progress, fraction: float) -> Progress:
        """Log, save, score; returns the progress, with a new best score if there is one.

        Args:
            result: Of the update just done.
            progress: Of the run, that update included.
            fraction: Part of the run used up.
        """
        ...


class SilentObserver:
    """Observer of all workers but the first: does nothing."""

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


class Trainer:
    """Training loop of a network over a stream of batches.

    Args:
        transformer: The network, on its device.
        optimiser: From `build_optimiser`.
        stream: Batches.
        optimiser_config: Clipping, smoothing, R-Drop.
        schedule: Learning rate.
        run: Length and batches per update.
        clock: Seconds, only ever going up.
        progress: Where to begin.
        group: The workers that train together.
        average: Moves after every update that changed the weights; None is no average.

    Raises:
        ConfigError: The stacks are to be compiled and cannot be.
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
        average: MovingAverage | None = None,
    ) -> None:
        self._transformer = transformer
        self._optimiser = optimiser
        self._stream = stream
        self._optimiser_config = optimiser_config
        self._schedule = schedule
        self._device = next(transformer.parameters()).device
        self._run = replace(run, precision=precision_on(self._device, run.precision))
        self._clock = clock
        self._group = group or Group()
        self._average = average
        is_low = self._run.precision == "bfloat16"
        self._copy = WorkingCopy(transformer) if is_low else None
        stacks = plain_stacks(transformer) if self._copy is None else self._copy.stacks
        stacks = compiled_stacks(stacks, self._device) if run.compile else stacks
        self._stacks = stacks if self._copy is None else in_bfloat16(stacks)
        self.progress = progress or Progress()
        self._following: tuple[list[Batch], BatchPosition, int] | None = None

    def fraction(self) -> float:
        """Part of the run used up, 0 to 1: of its updates or its minutes, whichever is more."""
        parts = [0.0]
        if self._run.max_updates:
            parts.append(self.progress.update / self._run.max_updates)
        if self._run.max_minutes:
            parts.append(self.progress.elapsed_seconds / (60.0 * self._run.max_minutes))
        return min(1.0, max(parts))

    def train(self, observer: Observer, *, should_stop: ShouldStop = never) -> None:
        """Update until the run is over or `should_stop` says so, between updates.

        What the observer does (saving, scoring) is not counted as training time.

        Raises:
            TrainingError: More updates in a row than are allowed had to be skipped, or one ran
                out of memory.
        """
        while self._is_to_continue(should_stop):
            started = self._clock()
            batches, position, epoch = self._following or self._read()
            self._following = None
            result = replace(self.update(batches, is_followed=True), epoch=epoch)
            elapsed = self._group.broadcast_number(self._clock() - started, self._device)
            done = self.progress
            self.progress = replace(
                done,
                update=result.update,
                position=position,
                elapsed_seconds=done.elapsed_seconds + elapsed,
                num_source_tokens=done.num_source_tokens + result.num_source_tokens,
                num_target_tokens=done.num_target_tokens + result.num_target_tokens,
                num_skipped_updates=done.num_skipped_updates + result.is_skipped,
                num_skipped_in_a_row=done.num_skipped_in_a_row + 1 if result.is_skipped else 0,
            )
            self.progress = observer.after_update(result, self.progress, self.fraction())

    def _read(self) -> tuple[list[Batch], BatchPosition, int]:
        """The batches of an update, the position behind them, and the epoch of the last."""
        batches = [next(self._stream) for _ in range(self._run.update_freq)]
        pinned = [batch.pinned(self._device) for batch in batches]
        return pinned, self._stream.position, self._stream.epoch

    def _is_to_continue(self, should_stop: ShouldStop) -> bool:
        is_going_on = self.fraction() < 1.0 and not should_stop()
        return bool(self._group.broadcast_number(float(is_going_on), self._device))

    def update(self, batches: Sequence[Batch], *, is_followed: bool = False) -> UpdateResult:
        """One update from the exact gradient of all `batches` together.

        If the loss or the gradient is not finite, nothing changes: neither weights nor moments
        nor their average. That is the one wait for the device.

        Args:
            batches: Of this update.
            is_followed: The batches of the next one are read while the device works.

        Raises:
            TrainingError: It was so for the last of the updates that may be skipped in a row; on
                all workers but the first, `FirstWorkerError`. Or there was no memory for it.
        """
        self._transformer.train()
        update = self.progress.update + 1
        rate = learning_rate(
            self._schedule,
            update=update,
            fraction=self.fraction(),
            d_model=self._transformer.config.d_model,
        )
        num_target = sum(batch.num_target_tokens for batch in batches)
        self._group.seed_dropout(self._run.seed, update)
        with naming_batches(self._run, update=update, device=self._device):
            total = self.accumulate(batches)
            gradient = self._clip()
            if is_followed:
                self._following = self._read()
            loss, norm = torch.stack((total, gradient.to(total))).tolist()
            loss = self._group.sum(loss, self._device)
            is_skipped = not (math.isfinite(loss) and math.isfinite(norm))
            if is_skipped:
                self._check_skips(update, loss=loss, norm=norm, rate=rate)
            else:
                self._step(rate)
        self._optimiser.zero_grad(set_to_none=True)
        return UpdateResult(
            update=update,
            epoch=self._stream.epoch,
            loss=loss,
            gradient_norm=norm,
            learning_rate=rate,
            num_source_tokens=sum(batch.num_source_tokens for batch in batches),
            num_target_tokens=num_target,
            is_skipped=is_skipped,
        )

    def accumulate(self, batches: Sequence[Batch]) -> Tensor:
        """Compute the gradient of the mean loss over all target tokens of `batches`.

        Every batch's summed loss is divided by the tokens of all of them, so that the result
        does not depend on how sentences are cut into batches, nor on how many workers share
        the batches.

        Returns:
            What this worker's batches add to the mean loss per target token, in nats: () float64
            on the device, which nobody has waited for.
        """
        num_target = sum(batch.num_target_tokens for batch in batches)
        config = self._optimiser_config
        if self._copy is not None:
            self._copy.refresh()
        losses = []
        for batch in self._group.shard(batches):
            with compute_context(self._device, self._run.precision):
                loss = batch_loss(
                    self._transformer,
                    batch.to(self._device),
                    smoothing=config.label_smoothing,
                    rdrop_alpha=config.rdrop_alpha,
                    stacks=self._stacks,
                )
            (loss / num_target).backward()  # type: ignore[no-untyped-call]  # torch's own
            if self._copy is not None:
                self._copy.hand_over()
            losses.append(loss.detach().double())
        self._group.sum_gradients(self._transformer.parameters())
        return torch.stack(losses).sum() / num_target

    def _clip(self) -> Tensor:
        limit = self._optimiser_config.max_gradient_norm or math.inf
        return clip_grad_norm_(self._transformer.parameters(), limit)

    def _step(self, rate: float) -> None:
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        self._optimiser.step()
        if self._average is not None:
            self._average.move()

    def _check_skips(self, update: int, *, loss: float, norm: float, rate: float) -> None:
        num_in_a_row = self.progress.num_skipped_in_a_row + 1
        limit = self._run.max_skipped_updates
        if num_in_a_row > limit:
            raise self._group.common_error(
                f"update {update}: loss {loss}, gradient norm {norm}; the run has diverged"
                f" (learning rate {rate:.3g}; {num_in_a_row} such updates in a row,"
                f" run.max_skipped_updates is {limit})"
            )
