"""Recognition of errors that mean that memory has run out.

Owns that question alone: torch has a type for it on a GPU, known here by its name, and on a CPU
nothing but words. Imports no torch.
"""

import errno

from model.errors import DragomanError

_SIGNS = (
    "DefaultCPUAllocator",
    "std::bad_alloc",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "Cannot allocate memory",
)
"""What a plain `RuntimeError` of torch's says when there is no memory."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that there is no memory left, on the host or on the GPU.

    One of ours says what the error says that it was raised from.
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, DragomanError):
        return error.__cause__ is not None and is_out_of_memory(error.__cause__)
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in _SIGNS)
