import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from model.errors import TrainingError
from model.train.config.optimiser import OptimiserConfig
from model.train.config.run import RunConfig
from model.train.config.schedule import ScheduleConfig
from model.train.data.batching import Batch, make_batch
from model.train.data.parallel import TokenisedPairs
from model.train.loop.loss import label_smoothed_loss
from model.train.loop.objective import batch_loss
from model.train.loop.paired_loss import paired_loss
from model.train.loop.trainer import Trainer
from model.train.saved.averaging import MovingAverage
from model.train.saved.state import Progress, load_state, save_state
from support.training import (
    Recorder,
    SecondPassDiffers,
    cut,
    gradients,
    network,
    reversal_pairs,
    stream,
    trainer,
)


@pytest.mark.parametrize("rdrop_alpha", [0.0, 3.0])
@pytest.mark.parametrize("size", [1, 4, 16])
def test_accumulated_gradients_are_those_of_the_large_batch(size: int, rdrop_alpha: float) -> None:
    pairs = reversal_pairs(32)
    found = []
    for batches in (cut(pairs, 32), cut(pairs, size)):
        transformer = network(dtype=torch.float64)
        if rdrop_alpha:
            transformer.encoder.dropout = SecondPassDiffers()
        config = OptimiserConfig(rdrop_alpha=rdrop_alpha)
        loss = trainer(transformer, optimiser=config).accumulate(batches).item()
        found.append((loss, gradients(transformer)))
    (large_loss, large), (small_loss, small) = found
    assert small_loss == pytest.approx(large_loss, abs=1e-12)
    assert small.keys() == large.keys()
    for name, gradient in large.items():
        torch.testing.assert_close(small[name], gradient, rtol=0, atol=1e-12)


def test_the_gradient_is_that_of_the_mean_loss_over_all_target_tokens() -> None:
    transformer = network(dtype=torch.float64)
    batches = cut(reversal_pairs(32), 8)
    loss = trainer(transformer).accumulate(batches).item()
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
    pairs = TokenisedPairs([[5, 6, 1], [7] * 9 + [1]], [[8, 1], [9] * 9 + [1]])
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
        losses.append(trainer(transformer).accumulate([batch]).item())
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


def test_a_step_is_adamw_with_the_experiments_values() -> None:
    config = OptimiserConfig(
        beta1=0.7, beta2=0.9, epsilon=1e-3, weight_decay=0.2, max_gradient_norm=0.0
    )
    transformer = network(dtype=torch.float64)
    learner = trainer(transformer, optimiser=config)
    batches = cut(reversal_pairs(32), 32)
    weight = transformer.get_parameter("encoder.layers.0.feed_forward.up_proj.weight")
    mean = squares = torch.zeros_like(weight)
    for number in (1, 2, 3):
        expected = weight.detach().clone()
        learner.accumulate(batches)
        assert weight.grad is not None
        gradient = weight.grad.clone()
        transformer.zero_grad()
        learner.progress = replace(learner.progress, update=number - 1)
        rate = learner.update(batches).learning_rate
        mean = 0.7 * mean + 0.3 * gradient
        squares = 0.9 * squares + 0.1 * gradient.square()
        expected *= 1 - 0.2 * rate
        step = mean / (1 - 0.7**number) / ((squares / (1 - 0.9**number)).sqrt() + 1e-3)
        torch.testing.assert_close(weight.detach(), expected - rate * step, rtol=0, atol=1e-12)


def test_every_update_has_the_learning_rate_of_its_number_and_of_what_is_done_before_it() -> None:
    schedule = ScheduleConfig(kind="constant", peak=4e-3, warmup_updates=4, tail_fraction=0.5)
    learner = trainer(network(), run=RunConfig(max_updates=8), schedule=schedule)
    recorder = Recorder()
    learner.train(recorder)
    # The tail begins with the update before which half of the run is done: 4, 5, 6, 7 of 8.
    rates = [1e-3, 2e-3, 3e-3, 4e-3, 4e-3, 3e-3, 2e-3, 1e-3]
    assert [result.learning_rate for result in recorder.results] == pytest.approx(rates)
    assert learner._optimiser.param_groups[0]["lr"] == pytest.approx(1e-3)


def test_a_resumed_run_has_the_learning_rate_of_the_update_that_is_next() -> None:
    schedule = ScheduleConfig(kind="constant", peak=4e-3, warmup_updates=4)
    recorder = Recorder()
    run = RunConfig(max_updates=4)
    trainer(network(), run=run, schedule=schedule, progress=Progress(update=2)).train(recorder)
    assert [result.update for result in recorder.results] == [3, 4]
    assert [result.learning_rate for result in recorder.results] == pytest.approx([3e-3, 4e-3])


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


def poison(transformer: torch.nn.Module) -> None:
    """From now on every loss is NaN."""
    with torch.no_grad():
        transformer.get_parameter("encoder.layers.0.feed_forward.up_proj.weight").fill_(math.nan)


def test_a_diverged_run_ends_before_a_weight_changes() -> None:
    transformer = network()
    poison(transformer)
    before = {name: value.clone() for name, value in transformer.state_dict().items()}
    recorder = Recorder()
    learner = trainer(transformer, run=RunConfig(max_updates=99, max_skipped_updates=3))
    with pytest.raises(
        TrainingError,
        match=r"update 4: loss nan, gradient norm nan; .* 4 such .* run\.max_skipped_updates is 3",
    ):
        learner.train(recorder)
    assert [result.is_skipped for result in recorder.results] == [True] * 3
    assert learner.progress.num_skipped_updates == learner.progress.num_skipped_in_a_row == 3
    for name, value in transformer.state_dict().items():
        torch.testing.assert_close(value, before[name], equal_nan=True)


def test_an_update_that_is_not_finite_changes_nothing() -> None:
    transformer = network()
    average = MovingAverage(transformer, decay=0.5)
    learner = trainer(transformer, average=average)
    batches = cut(reversal_pairs(32), 16)

    def everything() -> list[torch.Tensor]:
        moments = learner._optimiser.state_dict()["state"].values()
        found = [*transformer.state_dict().values(), *average.state().weights.values()]
        found += [tensor for state in moments for tensor in state.values()]
        return [tensor.clone() for tensor in found]

    learner.update(batches)  # now there are moments
    before = everything()
    assert transformer.output_bias is not None
    hook = transformer.output_bias.register_hook(lambda gradient: gradient * math.inf)
    result = learner.update(batches)
    hook.remove()
    assert result.is_skipped
    assert math.isfinite(result.loss)
    assert not math.isfinite(result.gradient_norm)
    assert all(map(torch.equal, everything(), before))
    assert not learner.update(batches).is_skipped
    assert not any(map(torch.equal, everything()[:3], before[:3]))


def test_skipped_updates_are_counted_and_forgiven_when_one_is_finite() -> None:
    transformer = network()
    numbers = iter(range(1, 100))
    assert transformer.output_bias is not None
    transformer.output_bias.register_hook(
        lambda gradient: gradient * math.nan if next(numbers) in {4, 5, 8} else gradient
    )
    recorder = Recorder()
    learner = trainer(transformer, run=RunConfig(max_updates=9, max_skipped_updates=2))
    learner.train(recorder)
    assert [result.update for result in recorder.results if result.is_skipped] == [4, 5, 8]
    assert learner.progress.update == 9
    assert learner.progress.num_skipped_updates == 3
    assert learner.progress.num_skipped_in_a_row == 0


def test_rdrop_is_the_formula_over_two_passes_side_by_side() -> None:
    batch = cut(reversal_pairs(32), 32)[0]
    found = []
    for is_plain in (True, False):
        transformer = network(dropout=0.3, dtype=torch.float64).train()
        torch.manual_seed(7)
        if is_plain:
            logits = transformer(batch.source_ids.repeat(2, 1), batch.target_ids.repeat(2, 1))
            passes = logits.view(2, *batch.labels.shape, -1)
            assert not torch.equal(passes[0], passes[1])
            loss = paired_loss(passes, batch.labels, smoothing=0.1, alpha=3.0)
        else:
            loss = batch_loss(transformer, batch, smoothing=0.1, rdrop_alpha=3.0)
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own
        found.append((loss, gradients(transformer)))
    (plain_loss, plain), (fused_loss, fused) = found
    torch.testing.assert_close(fused_loss, plain_loss, rtol=0, atol=1e-9)
    for name, gradient in plain.items():
        torch.testing.assert_close(fused[name], gradient, rtol=0, atol=1e-11)


def test_rdrop_without_gradients_is_rdrop_with_them() -> None:
    transformer = network(dtype=torch.float64)
    transformer.encoder.dropout = SecondPassDiffers()
    batch = cut(reversal_pairs(32), 32)[0]
    fused = batch_loss(transformer, batch, smoothing=0.1, rdrop_alpha=2.0)
    with torch.no_grad():
        plain = batch_loss(transformer, batch, smoothing=0.1, rdrop_alpha=2.0)
    torch.testing.assert_close(fused, plain, rtol=0, atol=1e-9)


def test_rdrop_trains() -> None:
    recorder = Recorder()
    config = OptimiserConfig(rdrop_alpha=1.0)
    run = RunConfig(max_updates=150, precision="bfloat16")
    trainer(network(dropout=0.1), run=run, optimiser=config).train(recorder)
    losses = [result.loss for result in recorder.results]
    assert sum(losses[-10:]) < 0.9 * sum(losses[:10])


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


def test_the_next_batches_are_read_before_an_update_is_known_to_be_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    for name in ("_read", "_step"):
        method = getattr(Trainer, name)

        def noted(*arguments: object, name: str = name, method: object = method) -> object:
            said.append(name)
            return method(*arguments)  # type: ignore[operator]  # one of the two

        monkeypatch.setattr(Trainer, name, noted)
    recorder = Recorder()
    learner = trainer(network(), run=RunConfig(max_updates=3))
    learner.train(recorder)
    assert said == ["_read", *["_read", "_step"] * 3]
    plain = stream(reversal_pairs())
    for _ in range(3):
        next(plain)
    assert learner.progress.position == plain.position


def test_the_batches_of_an_update_are_pinned_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned: list[int] = []

    def pin(tensor: torch.Tensor) -> torch.Tensor:
        copy = tensor.clone()
        pinned.append(copy.data_ptr())
        return copy

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    learner = trainer(network(), run=RunConfig(max_updates=1, update_freq=2))
    learner._device = torch.device("cuda")
    batches, _, _ = learner._read()
    assert len(batches) == 2
    fields = [(batch.source_ids, batch.target_ids, batch.labels) for batch in batches]
    assert [tensor.data_ptr() for batch in fields for tensor in batch] == pinned


class Readings(TorchDispatchMode):
    """Counts what of tensors is asked for on the host, but for the optimiser's counters there."""

    def __init__(self, counters: set[int]) -> None:
        super().__init__()
        self.num_numbers = 0
        self._counters = counters

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]  # torch's
        is_reading = func is torch.ops.aten._local_scalar_dense.default
        if is_reading and args[0].data_ptr() not in self._counters:
            self.num_numbers += 1
        return func(*args, **(kwargs or {}))


def test_an_update_waits_for_the_device_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One `tolist`, and no other value that Python looks at, with whatever number of batches."""
    num_lists = 0
    tolist = torch.Tensor.tolist

    def counted(tensor: torch.Tensor) -> object:
        nonlocal num_lists
        num_lists += 1
        return tolist(tensor)

    learner = trainer(network())
    batches = 2 * cut(reversal_pairs(32), 32)
    learner.update(batches)
    states = learner._optimiser.state.values()
    counters = {state["step"].data_ptr() for state in states if "step" in state}
    monkeypatch.setattr(torch.Tensor, "tolist", counted)
    with Readings(counters) as readings:
        learner.update(batches)
    assert (num_lists, readings.num_numbers) == (1, 0)
