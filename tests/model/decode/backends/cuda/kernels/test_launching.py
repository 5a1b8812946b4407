"""Compilation for a device that is not there, and the arguments its driver is given."""

import ctypes
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from model.decode.backends.cuda.kernels.driver import Function, _value, packed
from model.errors import DeviceError, KernelError
from support.logged import events_of


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
    assert told.keys() == {f"{d}-{rows}" for d in ("float16", "bfloat16") for rows in (0, 4, 128)}
    for name, one in told.items():
        assert one["elves"]
        assert all(one["elves"])
        launched = {call["name"] for call in one["calls"]}
        assert launched == {call["name"] for call in told["float16-0"]["calls"]}, name
        same = told[name.replace("bfloat16", "float16")]["calls"]
        assert one["calls"] == same  # precisions are launched alike
    for rows in (4, 128):
        [search] = [c for c in told[f"bfloat16-{rows}"]["calls"] if c["name"] == "search"]
        assert search["grid"] == [rows // 4, 1, 1]
    small = told["float16-0"]
    assert small["elves"] == [True] * 8
    calls = [tuple(call.values()) for call in small["calls"]]
    assert calls == [  # name, grid, threads, pointers, numbers
        ("embed", [4, 1, 1], 128, 8, 2),
        ("add_norm", [4, 1, 1], 128, 6, 0),
        ("product", [1, 1, 1], 128, 9, 1),
        ("tree_attention", [2, 2, 1], 128, 6, 1),
        ("source_attention", [2, 2, 1], 128, 5, 1),
        ("measure", [4, 1, 1], 128, 6, 1),
        ("pick", [4, 1, 1], 128, 7, 1),
        ("search", [2, 1, 1], 128, 12, 2),
        ("search", [2, 1, 1], 128, 12, 2),
    ]


class _RefusingDriver:
    """Loads, or launches, nothing."""

    def __init__(self, *, can_load: bool) -> None:
        self._can_load = can_load

    def load(self, binary: bytes, name: str, shared_bytes: int) -> Function:
        if not self._can_load:
            raise DeviceError("cuModuleLoadData of the CUDA driver returned 218")
        return Function(1)

    def launch(self, function: Function, **_: object) -> None:
        raise DeviceError("cuLaunchKernel of the CUDA driver returned 701")


@pytest.mark.parametrize(("can_load", "code"), [(False, "218"), (True, "701")])
def test_a_program_that_the_driver_refuses_is_tried_and_told_once(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    can_load: bool,
    code: str,
) -> None:
    pytest.importorskip("triton", reason="Triton is not installed: pip install 'dragoman[kernels]'")
    from model.decode.backends.cuda.kernels import launching

    compiled: list[str] = []

    def compile_program(program: object, *_: object, **__: object) -> launching.Compiled:
        compiled.append(str(program))
        return launching.Compiled(name="one", binary=b"", shared_bytes=0, num_warps=4, takes=())

    monkeypatch.setattr(launching, "compile_program", compile_program)
    launcher = launching.CompiledLauncher(_RefusingDriver(can_load=can_load), capability=90)
    with caplog.at_level(logging.WARNING, logger=launching.__name__):
        for _ in range(3):
            with pytest.raises(KernelError, match=f"_value: DeviceError: .*{code}"):
                launcher.launch(_value, (1,), (), {"K": 2})
    assert len(compiled) == 1
    [(event, fields)] = events_of(caplog)
    assert (event, fields["kernel"]) == ("kernel_replaced_by_torch", "_value")
    assert "DeviceError" in str(fields["reason"])


def test_arguments_are_addresses_of_numbers_and_two_null_pointers_come_last() -> None:
    values, places = packed([("pointer", 2**63 + 5), ("i32", -7), ("fp32", 0.5)])
    kinds = (ctypes.c_uint64, ctypes.c_int32, ctypes.c_float, ctypes.c_uint64, ctypes.c_uint64)
    read = [kind.from_address(place).value for kind, place in zip(kinds, places, strict=True)]
    assert read == [2**63 + 5, -7, 0.5, 0, 0]
    assert [type(value) for value in values] == list(kinds)
