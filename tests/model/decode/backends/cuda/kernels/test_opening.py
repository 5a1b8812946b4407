"""What serves where the programs cannot."""

import logging

import pytest
import torch

from model.decode.backends.cuda.kernels import opening
from model.decode.backends.cuda.kernels.opening import device_launcher
from support.logged import fields_of


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
    told = fields_of(caplog, "steps_run_by_torch")
    assert [fields["device"] for fields in told] == ["cuda:0"] * 3
    reasons = [str(fields["reason"]) for fields in told]
    assert "sm_75" in reasons[0]
    assert "torch.float64" in reasons[1]
    assert "libcuda.so.1" in reasons[2] or "triton" in reasons[2]


def _no_driver(name: str) -> None:
    raise OSError(f"{name}: cannot open shared object file")
