import pytest
import torch

from model.errors import DeviceError
from model.system.devices import resolve_device


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_asking_for_a_missing_device_is_an_error_and_auto_is_not():
    with pytest.raises(DeviceError, match="'cuda'"):
        resolve_device("cuda")
    assert resolve_device("auto") == torch.device("cpu")


@pytest.mark.gpu
def test_auto_takes_the_gpu():
    assert resolve_device("auto").type == "cuda"
    assert resolve_device("cpu").type == "cpu"
