"""What a run computes in where its experiment leaves it open."""

from functools import partial
from unittest.mock import patch

import pytest
import torch

from model.train.config.run import PrecisionName
from model.train.loop import precision
from model.train.loop.distributed import Group
from model.train.loop.precision import common_precision, precision_on
from support.forked import Send, run_workers

CPU = torch.device("cpu")


@pytest.mark.parametrize(("has_tiles", "expected"), [(True, "bfloat16"), (False, "float32")])
def test_a_processor_trains_in_bfloat16_where_it_multiplies_tiles_of_it(
    has_tiles: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "has_feature", {"amx_bf16": has_tiles}.__getitem__)
    assert precision_on(CPU, "auto") == expected


def test_a_gpu_trains_in_bfloat16_where_it_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = torch.device("cuda")
    for has_it, expected in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr(
            torch.cuda, "is_bf16_supported", lambda including_emulation, has=has_it: has
        )
        assert precision_on(gpu, "auto") == expected


def choose_together(send: Send, group: Group, *, with_tiles: int, name: PrecisionName) -> None:
    """One of the workers is on a processor that multiplies tiles."""
    with patch.object(precision, "has_feature", lambda _: group.rank == with_tiles):
        send(common_precision(group, CPU, name))


@pytest.mark.parametrize(
    ("with_tiles", "name", "expected"),
    [(0, "auto", "bfloat16"), (1, "auto", "float32"), (0, "float32", "float32")],
)
def test_workers_on_unlike_machines_all_compute_in_what_the_first_one_chooses(
    with_tiles: int, name: PrecisionName, expected: str
) -> None:
    choose = partial(choose_together, with_tiles=with_tiles, name=name)
    sent, exits = run_workers(choose, size=2)
    assert exits == [0, 0]
    assert [said for said, _ in sent] == [expected, expected]


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_what_an_experiment_names_is_what_is_computed_in(name: PrecisionName) -> None:
    assert precision_on(CPU, name) == name
