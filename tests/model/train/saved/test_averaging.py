from pathlib import Path

import pytest
import torch
from torch import nn

from model.errors import TrainingError
from model.train.saved.averaging import MovingAverage, average_snapshots, last_snapshots
from model.train.saved.state import AverageState, save_snapshot


def snapshots(folder: Path, values: list[float], *, width: int = 2) -> list[Path]:
    layer = nn.Linear(width, 1, bias=False)
    paths = []
    for update, value in enumerate(values):
        with torch.no_grad():
            layer.weight.fill_(value)
        paths.append(save_snapshot(folder, layer, update))
    return paths


def test_an_average_is_the_mean_of_every_weight(tmp_path: Path) -> None:
    average = average_snapshots(snapshots(tmp_path, [1.0, 2.0, 6.0]))
    assert torch.equal(average["weight"], torch.full((1, 2), 3.0))
    assert average["weight"].dtype == torch.float32


def test_the_average_of_one_is_itself(tmp_path: Path) -> None:
    average = average_snapshots(snapshots(tmp_path, [0.1]))
    assert torch.equal(average["weight"], torch.full((1, 2), 0.1))


def test_the_latest_snapshots_are_taken(tmp_path: Path) -> None:
    paths = snapshots(tmp_path, [1.0, 2.0, 3.0])
    assert last_snapshots(paths, [1, 2, 5]) == {1: paths[2:], 2: paths[1:]}
    assert last_snapshots(paths, [3, 4, 0]) == {3: paths}
    assert last_snapshots([], [0, 1]) == {}


def test_sums_are_made_in_float64(tmp_path: Path) -> None:
    # In float32 the ones would be lost beside 2²⁴.
    for values in ([2.0**24, 1.0, 1.0], [1.0, 2.0**24, 1.0]):
        average = average_snapshots(snapshots(tmp_path, values))
        assert torch.equal(average["weight"], torch.full((1, 2), (2.0**24 + 2.0) / 3.0))


def test_snapshots_of_different_networks_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    mixed = [*snapshots(tmp_path, [1.0]), *snapshots(tmp_path / "other", [1.0], width=3)]
    with pytest.raises(TrainingError, match="not of the same network"):
        average_snapshots(mixed)


def test_nothing_has_no_average() -> None:
    with pytest.raises(TrainingError, match="no snapshot"):
        average_snapshots([])


def test_the_moving_average_is_the_recursion_with_a_short_memory_at_first() -> None:
    layer = nn.Linear(2, 1, bias=False).double()
    average = MovingAverage(layer, decay=0.3)
    expected = layer.weight.detach().clone()
    for number, decay in enumerate((2 / 11, 3 / 12, 0.3, 0.3), start=1):
        with torch.no_grad():
            layer.weight.fill_(float(number**2))
        average.move()
        expected = decay * expected + (1 - decay) * layer.weight.detach()
        found = average.state().weights["weight"]
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_the_network_has_its_own_weights_again_after_an_error() -> None:
    layer = nn.Linear(2, 1, bias=False)
    average = MovingAverage(layer, decay=0.5)
    with torch.no_grad():
        layer.weight.fill_(7.0)

    def fail() -> None:
        with average.in_place():
            assert not torch.equal(layer.weight, torch.full((1, 2), 7.0))
            raise TrainingError

    with pytest.raises(TrainingError):
        fail()
    assert torch.equal(layer.weight, torch.full((1, 2), 7.0))


def test_another_networks_average_is_refused() -> None:
    average = MovingAverage(nn.Linear(2, 1, bias=False), decay=0.5)
    state = AverageState(num_updates=1, weights={"weight": torch.zeros(3, 1)})
    with pytest.raises(TrainingError, match="of another network"):
        average.restore(state)


def test_a_restored_average_goes_on_as_the_one_that_was_saved_and_apart_from_it() -> None:
    first, second = nn.Linear(2, 1, bias=False), nn.Linear(2, 1, bias=False)
    saved, restored = MovingAverage(first, decay=0.9), MovingAverage(second, decay=0.9)
    for _ in range(3):
        saved.move()
    state = saved.state()
    kept = AverageState(
        num_updates=state.num_updates,
        weights={name: weight.clone() for name, weight in state.weights.items()},
    )
    restored.restore(kept)
    assert restored.state().num_updates == 3
    assert torch.equal(restored.state().weights["weight"], state.weights["weight"])
    before = kept.weights["weight"].clone()
    with torch.no_grad():
        for layer in (first, second):
            layer.weight.fill_(5.0)
    for average in (saved, restored):
        average.move()
    assert torch.equal(restored.state().weights["weight"], saved.state().weights["weight"])
    assert torch.equal(kept.weights["weight"], before)
