"""A small network that learns to read backwards, and what trains it: parts of training tests."""

from collections.abc import Iterator

import numpy as np
import torch

from model.config import ModelConfig
from model.nn.transformer import Transformer
from model.train.config.optimiser import OptimiserConfig
from model.train.config.run import RunConfig
from model.train.config.schedule import ScheduleConfig
from model.train.data.batching import Batch, BatchStream, make_batch
from model.train.data.parallel import TokenisedPairs
from model.train.loop.distributed import Group
from model.train.loop.trainer import Trainer, UpdateResult, build_optimiser
from model.train.saved.averaging import MovingAverage
from model.train.saved.state import Progress

VOCABULARY = 23


def network(*, dropout: float = 0.0, dtype: torch.dtype = torch.float32) -> Transformer:
    """Always the same weights."""
    torch.manual_seed(11)
    config = ModelConfig(
        vocab_size=VOCABULARY,
        d_model=16,
        num_heads=2,
        d_ff=24,
        num_encoder_layers=1,
        num_decoder_layers=1,
        dropout=dropout,
    )
    return Transformer(config).to(dtype)


def reversal_pairs(num_pairs: int = 64) -> TokenisedPairs:
    """Targets are their sources read backwards: something that can be learnt."""
    generator = np.random.default_rng(3)
    bodies = [
        list(generator.integers(3, VOCABULARY, size=generator.integers(1, 9)))
        for _ in range(num_pairs)
    ]
    return TokenisedPairs(
        [[*body, 1] for body in bodies], [[*reversed(body), 1] for body in bodies]
    )


def stream(pairs: TokenisedPairs, progress: Progress | None = None) -> BatchStream:
    position = progress.position if progress else None
    return BatchStream(pairs, max_tokens=60, seed=5, pad_id=0, start_id=0, position=position)


class Ticks:
    """A clock that goes up by a second whenever it is read."""

    def __init__(self) -> None:
        self._now: Iterator[int] = iter(range(1_000_000))

    def __call__(self) -> float:
        return float(next(self._now))


class Recorder:
    """Keeps what every update was."""

    def __init__(self) -> None:
        self.results: list[UpdateResult] = []

    def after_update(self, result: UpdateResult, progress: Progress, fraction: float) -> Progress:
        """Keep it."""
        self.results.append(result)
        return progress


def trainer(
    transformer: Transformer,
    *,
    run: RunConfig | None = None,
    progress: Progress | None = None,
    optimiser: OptimiserConfig | None = None,
    group: Group | None = None,
    average: MovingAverage | None = None,
    schedule: ScheduleConfig | None = None,
) -> Trainer:
    optimiser = optimiser or OptimiserConfig()
    return Trainer(
        transformer,
        build_optimiser(transformer, optimiser),
        stream(reversal_pairs(), progress),
        optimiser_config=optimiser,
        schedule=schedule or ScheduleConfig(peak=3e-3, warmup_updates=5),
        run=run or RunConfig(max_updates=12),
        clock=Ticks(),
        progress=progress,
        group=group,
        average=average,
    )


class SecondPassDiffers(torch.nn.Module):
    """Stands for the dropout of R-Drop's second pass, whatever the batch: it scales that half."""

    def forward(self, embeddings: torch.Tensor) -> torch.Tensor:
        """(2B, T, D) → (2B, T, D)."""
        first, second = embeddings.chunk(2)
        return torch.cat([first, 0.7 * second])


def gradients(transformer: Transformer) -> dict[str, torch.Tensor]:
    """Copies of all gradients by name."""
    return {
        name: parameter.grad.clone()
        for name, parameter in transformer.named_parameters()
        if parameter.grad is not None
    }


def cut(pairs: TokenisedPairs, size: int) -> list[Batch]:
    """The first 32 pairs in batches of `size`."""
    return [
        make_batch(pairs, range(begin, begin + size), pad_id=0, start_id=0)
        for begin in range(0, 32, size)
    ]
