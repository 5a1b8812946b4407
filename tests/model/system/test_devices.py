from pathlib import Path

import pytest
import torch

from model.errors import DeviceError
from model.system import devices
from model.system.devices import (
    device_type,
    memory_limit,
    resolve_device,
    use_unplanned_attention,
)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_asking_for_a_missing_device_is_an_error_and_auto_is_not() -> None:
    with pytest.raises(DeviceError, match="'cuda'"):
        resolve_device("cuda")
    assert resolve_device("auto") == "cpu"


@pytest.mark.gpu
def test_auto_takes_the_gpu() -> None:
    assert resolve_device("auto") == "cuda"
    assert resolve_device("cpu") == "cpu"


@pytest.mark.parametrize("has_files", [True, False])
def test_torch_is_asked_only_where_a_driver_has_its_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, has_files: bool
) -> None:
    if has_files:
        (tmp_path / "nvidia0").touch()
    found = devices._may_have_gpu(tmp_path)
    monkeypatch.setattr(devices, "_may_have_gpu", lambda: found)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto") == ("cuda" if has_files else "cpu")


@pytest.mark.parametrize("device", ["cuda", "cuda:1", torch.device("cuda", 1)])
def test_the_kind_of_a_device_has_no_number(device: object) -> None:
    assert device_type(device) == "cuda"
    assert device_type(torch.device("cpu")) == "cpu"


def test_the_limit_is_that_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "host_limit", lambda: 3)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (1, 2))
    assert memory_limit("cpu") == 3
    assert memory_limit(torch.device("cuda", 0)) == 2


@pytest.mark.parametrize("device", ["cpu", "cuda", torch.device("cuda", 1)])
def test_attention_on_a_gpu_is_left_to_kernels_that_plan_nothing(device: object) -> None:
    before = torch.backends.cuda.cudnn_sdp_enabled()
    try:
        torch.backends.cuda.enable_cudnn_sdp(True)
        use_unplanned_attention(device)
        assert torch.backends.cuda.cudnn_sdp_enabled() == (device == "cpu")
        assert torch.backends.cuda.flash_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
