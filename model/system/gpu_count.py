"""Number of CUDA devices, without torch, which the server's front does not have.

Owns that question. Which device networks run on is `model.system.devices`.
"""

import ctypes

_DRIVER = "libcuda.so.1"


def num_gpus(driver: str = _DRIVER) -> int:
    """CUDA devices that this process may use, as the driver counts them.

    `CUDA_VISIBLE_DEVICES` counts. 0 where there is no driver, or it finds none.

    Args:
        driver: Name or path of its library.
    """
    try:
        library = ctypes.CDLL(driver)
        count = ctypes.c_int()
        if library.cuInit(0) != 0 or library.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return 0
    except (OSError, AttributeError):
        return 0
    return count.value
