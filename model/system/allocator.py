"""Freed memory in glibc's allocator: kept from now on, or given back.

Owns one setting, which is the process's, so only entry points call it, and one request, for
those that have just freed much. Does not own how much memory is used.
"""

import ctypes

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # <malloc.h>
_NEVER = -1
_LARGEST_MMAP_THRESHOLD = 32 * 2**20  # glibc refuses more (half of a heap)
_PAD = 256 * 2**20


def keep_freed_memory() -> bool:
    """Let later tensors have the memory of earlier ones, where the C library is glibc.

    As it starts, glibc takes every block of some 128 KiB and more from the kernel and gives it
    back when it is freed, so that each pass over a layer's activations begins with a page fault
    every 4 KiB. After this, blocks below 32 MiB come from heaps that never shrink.

    Returns:
        Whether it is so now; False under another C library, where nothing has changed.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = (
        (_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD),
        (_TRIM_THRESHOLD, _NEVER),
        (_TOP_PAD, _PAD),
    )
    return all(mallopt(name, value) == 1 for name, value in settings)


def give_back_freed_memory() -> None:
    """Let the kernel have every page that is free now, wherever in the heap, under glibc."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))
