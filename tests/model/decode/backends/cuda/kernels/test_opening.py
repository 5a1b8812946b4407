"""What serves where the programs cannot."""

import logging

import pytest
import torch

from model.decode.backends.cuda.kernels import opening
from model.decode.backends.cuda.kernels.opening import device_launcher


def test_torch_serves_and_the_log_says_why_where_a_kernel_cannot_be_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    device = torch.device("cuda", 0)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 5))
    with caplog.at_level(logging.INFO, logger=opening.__name__):
        assert device_launcher(device, torch.bfloat16) is None
        assert device_launcher(device, torch.float64) is None
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
        monkeypatch.setattr("model.decode.backends.cuda.kernels.driver.ctypes.CDLL", _no_driver)
        assert device_launcher(device, torch.bfloat16) is None
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
    messages = [record.getMessage() for record in caplog.records]
    assert "sm_75" in messages[0]
    assert "torch.float64" in messages[1]
    assert "libcuda.so.1" in messages[2] or "triton" in messages[2]


def _no_driver(name: str) -> None:
    raise OSError(f"{name}: cannot open shared object file")
