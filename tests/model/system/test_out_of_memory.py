import pytest
import torch

from model.system.out_of_memory import is_out_of_memory


def test_what_torch_raises_when_the_host_has_no_memory_is_recognised() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 47)
    assert is_out_of_memory(caught.value)


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB."), True),
        (MemoryError(), True),
        (RuntimeError("std::bad_alloc"), True),
        (RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"), True),
        (RuntimeError("CUDA error: device-side assert triggered"), False),
        (ValueError("DefaultCPUAllocator: can't allocate memory"), False),
    ],
)
def test_it_is_told_from_other_errors(error: Exception, is_memory: bool) -> None:
    assert is_out_of_memory(error) == is_memory
