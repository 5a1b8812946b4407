from pathlib import Path

import pytest
import torch
from torch import nn

from model.errors import TrainingError
from model.train.averaging import average_snapshots, last_snapshots
from model.train.state import save_snapshot


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


def test_snapshots_of_different_networks_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    mixed = [*snapshots(tmp_path, [1.0]), *snapshots(tmp_path / "other", [1.0], width=3)]
    with pytest.raises(TrainingError, match="not of the same network"):
        average_snapshots(mixed)


def test_nothing_has_no_average() -> None:
    with pytest.raises(TrainingError, match="no snapshot"):
        average_snapshots([])
