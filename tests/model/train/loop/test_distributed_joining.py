"""How a worker finds the others: its environment, the address of the first one, its device."""

import socket
from datetime import timedelta

import pytest
import torch

from model.errors import ConfigError, DeviceError
from model.train.loop.distributed import (
    _TIMEOUT,
    joined_group,
    local_device,
)
from support.forked import free_port


def test_without_torchrun_a_worker_is_alone() -> None:
    with joined_group({}, torch.device("cpu")) as group:
        assert (group.rank, group.size) == (0, 1)
        assert group.is_first


def test_half_an_environment_is_refused() -> None:
    environment = {"WORLD_SIZE": "2", "RANK": "0"}
    with (
        pytest.raises(ConfigError, match="LOCAL_RANK, MASTER_ADDR, MASTER_PORT is not"),
        joined_group(environment, torch.device("cpu")),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "value", "limit"),
    [("WORLD_SIZE", "two", 1), ("WORLD_SIZE", "0", 1), ("RANK", "", 0), ("LOCAL_RANK", "-1", 0)],
)
def test_an_environment_of_no_numbers_is_refused(name: str, value: str, limit: int) -> None:
    environment = {**two_at("127.0.0.1", 1, rank=0), name: value}
    message = f"^{name} is '{value}'; torchrun sets it to a whole number, at least {limit}$"
    with (
        pytest.raises(ConfigError, match=message),
        joined_group(environment, torch.device("cpu")),
    ):
        pass


def test_a_worker_uses_its_own_gpu_before_it_meets_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[object] = []
    monkeypatch.setattr(torch.cuda, "set_device", done.append)
    monkeypatch.setattr(
        "model.train.loop.distributed._join", lambda backend, _: done.append(backend)
    )
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    for device in (torch.device("cuda", 1), torch.device("cpu")):
        with joined_group(two_at("127.0.0.1", 1, rank=1), device) as group:
            assert (group.rank, group.size) == (1, 2)
    assert done == [torch.device("cuda", 1), "nccl", "gloo"]


def two_at(address: str, port: int, *, rank: int) -> dict[str, str]:
    """What torchrun tells one of two workers."""
    return {
        "WORLD_SIZE": "2",
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
    }


def cannot_join(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("model.train.loop.distributed._JOIN_TIMEOUT", timedelta(seconds=1))
    with (
        pytest.raises(ConfigError) as caught,
        joined_group(environment, torch.device("cpu")),
    ):
        pass
    return str(caught.value)


def test_a_port_that_is_taken_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = cannot_join(two_at("127.0.0.1", port, rank=0), monkeypatch)
    assert message.startswith(
        f"the workers cannot meet at 127.0.0.1, port {port} (MASTER_ADDR, MASTER_PORT): "
    )
    assert "\n" not in message


def test_an_address_where_nobody_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    message = cannot_join(two_at("127.0.0.1", port, rank=1), monkeypatch)
    assert message.startswith(f"the workers cannot meet at 127.0.0.1, port {port} ")
    assert "\n" not in message


def test_waiting_for_the_first_worker_has_no_end_that_a_run_could_reach() -> None:
    assert timedelta(days=7) < _TIMEOUT < timedelta(milliseconds=2**31 - 1)


def test_more_workers_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert local_device(torch.device("cuda")) == torch.device("cuda", 1)
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(DeviceError, match="LOCAL_RANK is 2, and this machine has 2 GPUs"):
        local_device(torch.device("cuda"))
    monkeypatch.setenv("LOCAL_RANK", "one")
    with pytest.raises(ConfigError, match="LOCAL_RANK is 'one'; torchrun sets it to a whole"):
        local_device(torch.device("cuda"))
    assert local_device(torch.device("cpu")) == torch.device("cpu")
