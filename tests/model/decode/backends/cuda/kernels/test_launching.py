"""Compilation for a device that is not there, and the arguments its driver is given."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from model.decode.backends.cuda.kernels.driver import packed


def test_every_program_compiles_for_sm_90_without_a_device_or_a_c_compiler(tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="Triton is not installed: pip install 'dragoman[kernels]'")
    found = subprocess.run(
        [sys.executable, "-m", "support.compiled_kernels"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ
        | {
            "TRITON_INTERPRET": "0",
            "TRITON_CACHE_DIR": str(tmp_path),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "PATH": "",
            "CC": "/no/compiler",
        },
    )
    assert found.returncode == 0, found.stderr
    told = json.loads(found.stdout)
    assert told["elves"] == [True] * 8
    calls = [tuple(call.values()) for call in told["calls"]]
    assert calls == [  # name, grid, threads, pointers, numbers
        ("embed", [4, 1, 1], 128, 8, 1),
        ("add_norm", [4, 1, 1], 128, 6, 0),
        ("product", [1, 1, 1], 128, 9, 1),
        ("tree_attention", [2, 2, 1], 128, 6, 0),
        ("source_attention", [2, 2, 1], 128, 5, 0),
        ("measure", [4, 1, 1], 128, 6, 1),
        ("pick", [4, 1, 1], 128, 7, 1),
        ("search", [2, 1, 1], 128, 12, 1),
        ("search", [2, 1, 1], 128, 12, 1),
    ]


def test_arguments_are_addresses_of_numbers_and_two_null_pointers_come_last() -> None:
    values, places = packed([("pointer", 2**63 + 5), ("i32", -7), ("fp32", 0.5)])
    kinds = (ctypes.c_uint64, ctypes.c_int32, ctypes.c_float, ctypes.c_uint64, ctypes.c_uint64)
    read = [kind.from_address(place).value for kind, place in zip(kinds, places, strict=True)]
    assert read == [2**63 + 5, -7, 0.5, 0, 0]
    assert [type(value) for value in values] == list(kinds)
