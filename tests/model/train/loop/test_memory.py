import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from model.config import ModelConfig
from model.errors import ConfigError, TrainingError
from model.nn.transformer import Transformer
from model.system.host_memory import host_limit
from model.train.config.experiment import Experiment, read_placed_experiment
from model.train.config.network import NetworkConfig
from model.train.config.optimiser import OptimiserConfig
from model.train.config.run import RunConfig
from model.train.loop.memory import (
    check_memory,
    matrix_weights,
    naming_batches,
    naming_dev_loss,
)
from model.train.records.report import format_experiment
from support.tiny_runs import EXPERIMENT, run

UNLIMITED = 9_223_372_036_854_771_712
"""What control groups of version 1 say where there is no limit."""


def with_network(**values: Any) -> Experiment:
    return replace(EXPERIMENT, network=NetworkConfig(**values))


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"num_encoder_layers": 0, "num_decoder_layers": 3, "d_ff": 5},
        {"share_embeddings": False, "target_vocab_size": 13},
        {"share_embeddings": False, "target_vocab_size": 13, "tie_output": False},
        {"d_k": 3, "d_v": 5, "norm": "rmsnorm", "output_bias": False},
        {"gated_feed_forward": True, "decoder_d_ff": 17},
        {"decoder_cell": "ssru", "d_k": 3, "d_v": 5},
    ],
)
def test_weights_are_counted_as_the_network_has_them(values: dict[str, Any]) -> None:
    shape = {"d_model": 8, "num_heads": 2, "d_ff": 24, "num_encoder_layers": 2}
    config = ModelConfig(vocab_size=11, **{**shape, "num_decoder_layers": 1, **values})
    parameters = Transformer(config).parameters()
    assert matrix_weights(config) == sum(item.numel() for item in parameters if item.dim() == 2)


def test_a_network_is_refused_from_the_first_byte_on_that_is_missing() -> None:
    size = EXPERIMENT.vocabulary.size
    shape = EXPERIMENT.network.build(source_size=size, target_size=size, is_joint=True)
    num_bytes = 16 * matrix_weights(shape)  # weight, gradient and two moments of four bytes
    check_memory(EXPERIMENT, num_bytes)
    check_memory(EXPERIMENT, None)
    with pytest.raises(ConfigError, match="with their gradients and Adam's moments; there are"):
        check_memory(EXPERIMENT, num_bytes - 1)
    averaged = replace(EXPERIMENT, optimiser=OptimiserConfig(ema_decay=0.9))
    check_memory(averaged, num_bytes * 5 // 4)
    with pytest.raises(
        ConfigError, match=r"gradients, the average of optimiser\.ema_decay and Adam's"
    ):
        check_memory(averaged, num_bytes * 5 // 4 - 1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"d_model": 1_000_000}, r"network\.d_model 1000000, .* take 1,073,\d{3}\.\d GiB with"),
        ({"d_model": 2**11, "d_ff": 2**20}, r"network\.d_ff 1048576, "),
        ({"d_model": 2**11, "num_decoder_layers": 2**10}, r"\.num_decoder_layers 1024 and"),
        ({"d_model": 2**20, "d_ff": 2**20}, r"there are at most 24\.0 GiB$"),
    ],
)
def test_a_gigantic_network_is_refused_by_its_keys(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_memory(with_network(**values), 24 * 2**30)


def test_a_run_of_a_gigantic_network_names_the_line_and_reads_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "wide.yaml"
    text = format_experiment(EXPERIMENT).replace("d_model: 16", "d_model: 1000000")
    path.write_text(text, encoding="utf-8")
    line = text.splitlines().index("network:") + 1
    experiment, places = read_placed_experiment(path)
    with pytest.raises(ConfigError, match=rf"wide\.yaml:{line}: network\.d_model 1000000, "):
        run(tmp_path / "no text", tmp_path / "run", experiment=experiment, places=places)
    assert not (tmp_path / "run").exists()


def machine(
    folder: Path, *, cgroup: str, swap: int = 0, limits: dict[str, str] | None = None
) -> int:
    """What is found on a machine of 8 MiB."""
    (folder / "proc" / "self").mkdir(parents=True)
    (folder / "proc" / "meminfo").write_text(
        f"MemTotal:        8192 kB\nMemFree:      12 kB\nHugePages_Total:       0\n"
        f"SwapTotal:       {swap} kB\n",
        encoding="utf-8",
    )
    (folder / "proc" / "self" / "cgroup").write_text(cgroup, encoding="utf-8")
    for name, text in (limits or {}).items():
        path = folder / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
    found = host_limit(folder / "proc", folder / "groups")
    assert found is not None
    return found


def test_a_machine_has_its_memory_and_its_swap_space(tmp_path: Path) -> None:
    assert machine(tmp_path / "a", cgroup="0::/\n") == 8 * 2**20
    assert machine(tmp_path / "b", cgroup="0::/\n", swap=1024) == 9 * 2**20


@pytest.mark.parametrize(
    ("cgroup", "limits", "expected"),
    [
        ("0::/\n", {"memory.max": "4096"}, 4096),
        ("0::/\n", {"memory.max": "max"}, 8 * 2**20),
        ("0::/\n", {"memory.max": str(2**40)}, 8 * 2**20),
        ("0::/pod/box\n", {"pod/memory.max": "5000", "pod/box/memory.max": "max"}, 5000),
        ("0::/pod/box\n", {"pod/memory.max": "5000", "pod/box/memory.max": "4096"}, 4096),
        ("0::/pod/box\n", {"memory.max": "4096"}, 4096),  # a path of the machine, seen from within
        ("4:cpu,memory:/a\n0::/\n", {"memory/a/memory.limit_in_bytes": "4096"}, 4096),
        ("4:memory:/a\n", {"memory/memory.limit_in_bytes": str(UNLIMITED)}, 8 * 2**20),
        ("4:cpu:/a\n", {"memory/a/memory.limit_in_bytes": "4096"}, 8 * 2**20),
    ],
)
def test_a_container_has_what_its_control_groups_leave_it(
    tmp_path: Path, cgroup: str, limits: dict[str, str], expected: int
) -> None:
    assert machine(tmp_path, cgroup=cgroup, limits=limits) == expected


def test_where_linux_does_not_tell_nothing_is_known(tmp_path: Path) -> None:
    assert host_limit(tmp_path, tmp_path) is None


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB."), True),
        (MemoryError(), True),
        (RuntimeError("CUDA error: device-side assert triggered"), False),
    ],
)
def test_an_update_names_its_batches_only_where_memory_is_the_trouble(
    error: Exception, is_memory: bool
) -> None:
    class Held:
        pass

    def fail() -> None:
        held = Held()
        left.append(weakref.ref(held))
        raise error

    left: list[weakref.ref[Held]] = []
    config = RunConfig(max_updates=1, batch_tokens=4096, update_freq=2)
    with (
        pytest.raises(TrainingError if is_memory else type(error)) as caught,
        naming_batches(config, update=7, device=torch.device("cuda", 1)),
    ):
        fail()
    if not is_memory:
        assert caught.value is error
        return
    assert str(caught.value) == (
        "update 7: out of memory on cuda:1; run.batch_tokens is 4096: smaller batches with a larger"
        " run.update_freq (it is 2) read as much an update, in a run that begins anew or with"
        f" --start-from; {str(error).partition(chr(10))[0] or 'MemoryError'}"
    )
    assert left[0]() is None


def test_a_dev_loss_names_its_corpus_and_its_batches() -> None:
    config = RunConfig(max_updates=1, batch_tokens=4096)
    with (
        pytest.raises(TrainingError) as caught,
        naming_dev_loss("dev/news", config, torch.device("cpu")),
    ):
        raise MemoryError
    assert str(caught.value) == (
        "dev/news: out of memory on cpu while its loss was computed; run.batch_tokens is 4096:"
        " smaller batches need less, in a run that begins anew or with --start-from; MemoryError"
    )
