"""Freed memory stays with the process: counted in page faults, in a process of its own."""

import subprocess
import sys

import pytest

from model.system import allocator

_CODE = """
import ctypes, resource, sys
from model.system.allocator import keep_freed_memory

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
libc.free.argtypes = (ctypes.c_void_p,)
if sys.argv[1] == "kept":
    assert keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    for size in (3 << 20, 9 << 20):
        block = libc.malloc(size)
        libc.memset(block, 1, size)
        libc.free(block)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(how: str) -> int:
    command = [sys.executable, "-c", _CODE, how]
    # A threshold in the environment is one that glibc does not move by itself.
    environment = {"MALLOC_MMAP_THRESHOLD_": str(1 << 17)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return int(done.stdout)


@pytest.mark.skipif(not hasattr(allocator.ctypes.CDLL(None), "mallopt"), reason="not glibc")
def test_a_block_like_one_that_was_freed_costs_no_page_faults() -> None:
    assert page_faults("kept") * 4 < page_faults("as it is")


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: object())

    assert not allocator.keep_freed_memory()


_HOLES = """
import ctypes
from pathlib import Path
from model.system.allocator import give_back_freed_memory

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
libc.free.argtypes = (ctypes.c_void_p,)

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

blocks = [libc.malloc(64 << 10) for _ in range(200)]
for block in blocks:
    libc.memset(block, 1, 64 << 10)
for block in blocks[:-1]:
    libc.free(block)
full = resident()
give_back_freed_memory()
print(4096 * (full - resident()))
"""


@pytest.mark.skipif(not hasattr(allocator.ctypes.CDLL(None), "malloc_trim"), reason="not glibc")
def test_holes_below_a_block_that_is_used_go_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _HOLES], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) > 10 << 20
