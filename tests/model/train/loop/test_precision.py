"""What a run computes in where its experiment leaves it open."""

import pytest
import torch

from model.train.config.run import PrecisionName
from model.train.loop import precision
from model.train.loop.precision import precision_on

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


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_what_an_experiment_names_is_what_is_computed_in(name: PrecisionName) -> None:
    assert precision_on(CPU, name) == name
