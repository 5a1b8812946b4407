from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from model.config import ModelConfig
from model.errors import TrainingError
from model.nn.transformer import Transformer
from model.train.batching import Batch, BatchStream, make_batch
from model.train.data import TokenisedPairs
from model.train.experiment import OptimiserConfig, RunConfig
from model.train.loss import label_smoothed_loss
from model.train.objective import batch_loss
from model.train.schedule import ScheduleConfig
from model.train.state import Progress, load_state, save_state
from model.train.trainer import Trainer, UpdateResult, build_optimiser

VOCABULARY = 23


def network(*, dropout: float = 0.0, dtype: torch.dtype = torch.float32) -> Transformer:
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
        [[*body, 1] for body in bodies],
        [[*reversed(body), 1] for body in bodies],
        [1] * num_pairs,
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
    def __init__(self) -> None:
        self.results: list[UpdateResult] = []

    def after_update(self, result: UpdateResult, progress: Progress, fraction: float) -> Progress:
        self.results.append(result)
        return progress


def trainer(
    transformer: Transformer, *, run: RunConfig | None = None, progress: Progress | None = None
) -> Trainer:
    optimiser_config = OptimiserConfig()
    return Trainer(
        transformer,
        build_optimiser(transformer, optimiser_config),
        stream(reversal_pairs(), progress),
        optimiser_config=optimiser_config,
        schedule=ScheduleConfig(peak=3e-3, warmup_updates=5),
        run=run or RunConfig(max_updates=12),
        clock=Ticks(),
        progress=progress,
    )


def gradients(transformer: Transformer) -> dict[str, torch.Tensor]:
    return {
        name: parameter.grad.clone()
        for name, parameter in transformer.named_parameters()
        if parameter.grad is not None
    }


def cut(pairs: TokenisedPairs, size: int) -> list[Batch]:
    return [
        make_batch(pairs, range(begin, begin + size), pad_id=0, start_id=0)
        for begin in range(0, 32, size)
    ]


@pytest.mark.parametrize("size", [1, 4, 16])
def test_accumulated_gradients_are_those_of_the_large_batch(size: int) -> None:
    pairs = reversal_pairs(32)
    found = []
    for batches in (cut(pairs, 32), cut(pairs, size)):
        transformer = network(dtype=torch.float64)
        loss = trainer(transformer).accumulate(batches)
        found.append((loss, gradients(transformer)))
    (large_loss, large), (small_loss, small) = found
    assert small_loss == pytest.approx(large_loss, abs=1e-12)
    assert small.keys() == large.keys()
    for name, gradient in large.items():
        torch.testing.assert_close(small[name], gradient, rtol=0, atol=1e-12)


def test_the_gradient_is_that_of_the_mean_loss_over_all_target_tokens() -> None:
    transformer = network(dtype=torch.float64)
    batches = cut(reversal_pairs(32), 8)
    loss = trainer(transformer).accumulate(batches)
    accumulated = gradients(transformer)
    transformer.zero_grad()
    num_target = sum(batch.num_target_tokens for batch in batches)
    total = sum(
        label_smoothed_loss(
            transformer(batch.source_ids, batch.target_ids), batch.labels, smoothing=0.1
        )
        for batch in batches
    )
    mean = torch.as_tensor(total) / num_target
    mean.backward()  # type: ignore[no-untyped-call]  # torch's own
    assert loss == pytest.approx(mean.item(), abs=1e-12)
    for name, gradient in gradients(transformer).items():
        torch.testing.assert_close(accumulated[name], gradient, rtol=0, atol=1e-12)


def test_padding_changes_neither_loss_nor_gradient() -> None:
    pairs = TokenisedPairs([[5, 6, 1], [7] * 9 + [1]], [[8, 1], [9] * 9 + [1]], [1, 1])
    alone = network(dtype=torch.float64)
    padded = network(dtype=torch.float64)
    together = make_batch(pairs, [0, 1], pad_id=0, start_id=0)
    first_row = Batch(
        source_ids=together.source_ids[:1],
        target_ids=together.target_ids[:1],
        labels=together.labels[:1],
        num_source_tokens=3,
        num_target_tokens=2,
    )
    losses = []
    for transformer, batch in (
        (alone, make_batch(pairs, [0], pad_id=0, start_id=0)),
        (padded, first_row),
    ):
        losses.append(trainer(transformer).accumulate([batch]))
    assert losses[0] == pytest.approx(losses[1], abs=1e-12)
    other = gradients(padded)
    for name, gradient in gradients(alone).items():
        torch.testing.assert_close(other[name], gradient, rtol=0, atol=1e-12)


def test_the_loss_without_gradients_is_the_loss_with_them() -> None:
    transformer = network(dtype=torch.float64)
    batch = cut(reversal_pairs(32), 32)[0]
    fused = batch_loss(transformer, batch, smoothing=0.1)
    with torch.no_grad():
        plain = batch_loss(transformer, batch, smoothing=0.1)
    torch.testing.assert_close(fused, plain, rtol=0, atol=1e-9)


def test_training_learns() -> None:
    recorder = Recorder()
    trainer(network(), run=RunConfig(max_updates=150)).train(recorder)
    assert len(recorder.results) == 150
    losses = [result.loss for result in recorder.results]
    assert sum(losses[-10:]) < 0.8 * sum(losses[:10])


def test_gradients_are_clipped_to_the_norm() -> None:
    transformer = network()
    learner = trainer(transformer)
    learner.accumulate(cut(reversal_pairs(32), 32))
    norm = learner._clip()
    clipped = torch.stack([g.norm() for g in gradients(transformer).values()]).norm().item()
    assert norm > 1.0
    assert clipped == pytest.approx(1.0, rel=1e-4)


def test_a_run_ends_after_its_minutes() -> None:
    recorder = Recorder()
    learner = trainer(network(), run=RunConfig(max_minutes=0.1))  # every update takes a second
    learner.train(recorder)
    assert len(recorder.results) == 6
    assert learner.fraction() == 1.0


def test_a_run_stops_between_updates_when_it_is_asked_to() -> None:
    recorder = Recorder()
    trainer(network()).train(recorder, should_stop=lambda: len(recorder.results) == 3)
    assert [result.update for result in recorder.results] == [1, 2, 3]


def test_a_diverged_loss_is_refused_before_a_weight_changes() -> None:
    transformer = network()
    with torch.no_grad():
        transformer.encoder.layers[0].feed_forward.up_proj.weight.fill_(float("nan"))
    before = {name: value.clone() for name, value in transformer.state_dict().items()}
    with pytest.raises(TrainingError, match="update 1: loss nan"):
        trainer(transformer).train(Recorder())
    for name, value in transformer.state_dict().items():
        torch.testing.assert_close(value, before[name], equal_nan=True)


def run_updates(learner: Trainer) -> dict[str, torch.Tensor]:
    learner.train(Recorder())
    return {name: value.clone() for name, value in learner._transformer.state_dict().items()}


@pytest.mark.parametrize("update_freq", [1, 2])
def test_a_resumed_run_is_the_run_that_was_never_stopped(tmp_path: Path, update_freq: int) -> None:
    whole_run = RunConfig(max_updates=14, update_freq=update_freq)
    torch.manual_seed(21)
    uncut = trainer(network(dropout=0.3), run=whole_run)
    torch.manual_seed(22)
    expected = run_updates(uncut)

    first = trainer(network(dropout=0.3), run=replace(whole_run, max_updates=9))
    torch.manual_seed(22)
    run_updates(first)
    save_state(
        tmp_path,
        transformer=first._transformer,
        optimiser=first._optimiser,
        progress=first.progress,
        fingerprint="f",
    )
    torch.manual_seed(99)  # whatever happened in between must not matter
    fresh = network(dropout=0.3)
    second = trainer(fresh, run=whole_run)
    progress = load_state(
        tmp_path,
        transformer=fresh,
        optimiser=second._optimiser,
        fingerprint="f",
        device=torch.device("cpu"),
    ).progress
    second.progress = progress
    second._stream = stream(reversal_pairs(), progress)
    found = run_updates(second)
    assert second.progress == uncut.progress
    for name, value in expected.items():
        assert torch.equal(found[name], value), name
