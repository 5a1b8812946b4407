"""How fast a device trains: updates of a student, and the kernels that take their time.

Owns the measurement; the pairs are random, with the lengths of image captions.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.training import RandomPairs
from model.config import ModelConfig
from model.nn.transformer import Transformer
from model.train.config.optimiser import OptimiserConfig
from model.train.config.run import RunConfig
from model.train.config.schedule import ScheduleConfig
from model.train.data.batching import BatchStream
from model.train.loop.trainer import Trainer, UpdateResult, build_optimiser
from model.train.saved.averaging import MovingAverage
from model.train.saved.state import Progress

STUDENT = ModelConfig(
    vocab_size=12_000,
    d_model=256,
    num_heads=4,
    d_ff=1024,
    num_encoder_layers=6,
    num_decoder_layers=2,
    dropout=0.1,
    pad_id=0,
)
BATCH_TOKENS, QUICK_BATCH_TOKENS = 16_384, 256
LOSSES = {"cross-entropy": 0.0, "R-Drop": 1.0}
_NUM_WARM_UP, _NUM_TIMED, _NUM_PROFILED, _NUM_KERNELS = 40, 60, 8, 20


@dataclass(slots=True)
class _Count:
    """An observer that counts tokens."""

    num_tokens: int = 0

    def after_update(self, result: UpdateResult, progress: Progress, fraction: float) -> Progress:  # noqa: ARG002  # the protocol's
        """Add those of an update."""
        self.num_tokens += result.num_source_tokens + result.num_target_tokens
        return progress


@dataclass(slots=True)
class _After:
    """Stops after so many updates."""

    num_left: int

    def __call__(self) -> bool:
        self.num_left -= 1
        return self.num_left < 0


def measure(device: torch.device, *, is_quick: bool) -> Iterator[dict[str, Any]]:
    """A row for each loss: updates and tokens (source and target) a second, memory, kernels."""
    for loss, alpha in LOSSES.items():
        trainer, observer = _trainer(device, alpha=alpha, is_quick=is_quick), _Count()
        num_timed = 2 if is_quick else _NUM_TIMED

        def run(count: int, trainer: Trainer = trainer, observer: _Count = observer) -> float:
            started = time.perf_counter()
            trainer.train(observer, should_stop=_After(count))
            if device.type == "cuda":
                torch.cuda.synchronize()
            return time.perf_counter() - started

        run(1 if is_quick else _NUM_WARM_UP)
        observer.num_tokens = 0
        seconds = run(num_timed)
        row: dict[str, Any] = {
            "loss": loss,
            "updates_per_second": round(num_timed / seconds, 2),
            "tokens_per_second": round(observer.num_tokens / seconds),
        }
        if device.type == "cuda":
            row["peak_mib"] = round(torch.cuda.max_memory_allocated() / 2**20)
            with profile(activities=[ProfilerActivity.CUDA]) as profiler:
                run(_NUM_PROFILED)
            row |= _kernels(profiler)
        yield row


def _kernels(profiler: profile) -> dict[str, Any]:
    """Milliseconds of kernels an update, how many there are, and those that take the most."""
    found = sorted(
        (
            (event.self_device_time_total / 1e3 / _NUM_PROFILED, event.count, event.key[:100])
            for event in profiler.key_averages()
            if event.self_device_time_total
        ),
        reverse=True,
    )
    return {
        "device_ms_an_update": round(sum(entry[0] for entry in found), 3),
        "kernels_an_update": sum(entry[1] for entry in found) // _NUM_PROFILED,
        "top_kernels": [[name, round(ms, 3)] for ms, _, name in found[:_NUM_KERNELS]],
    }


def _trainer(device: torch.device, *, alpha: float, is_quick: bool) -> Trainer:
    """As a run of `experiments/` has it, moving average included."""
    batch_tokens = QUICK_BATCH_TOKENS if is_quick else BATCH_TOKENS
    torch.manual_seed(1)
    transformer = Transformer(STUDENT).to(device)
    config = OptimiserConfig(rdrop_alpha=alpha, ema_decay=0.999)
    return Trainer(
        transformer,
        build_optimiser(transformer, config),
        BatchStream(RandomPairs(), max_tokens=batch_tokens, seed=1, pad_id=0, start_id=1),
        optimiser_config=config,
        schedule=ScheduleConfig(kind="constant", peak=1e-4),
        run=RunConfig(max_updates=10**6, batch_tokens=batch_tokens, precision="bfloat16"),
        clock=time.perf_counter,
        average=MovingAverage(transformer, decay=config.ema_decay),
    )
