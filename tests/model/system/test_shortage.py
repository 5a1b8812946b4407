"""Memory that is short as one error: what it names, and which errors become it."""

import errno
from pathlib import Path

import pytest

from model.errors import CheckpointError, MemoryShortageError
from model.system import devices, shortage
from model.system.out_of_memory import is_out_of_memory
from model.system.shortage import check_memory, reporting_shortage

MODEL = Path("models/large")


@pytest.fixture
def _three_mebibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortage, "free_memory", lambda: 3 * 2**20)


@pytest.mark.usefixtures("_three_mebibytes")
def test_what_is_more_than_there_is_is_refused_with_both() -> None:
    check_memory(MODEL, 3 * 2**20)
    with pytest.raises(MemoryShortageError) as caught:
        check_memory(MODEL, 3 * 2**20 + 1)
    assert (caught.value.needed_bytes, caught.value.free_bytes) == (3 * 2**20 + 1, 3 * 2**20)
    assert str(caught.value) == ("models/large: needs at least 3.0 MiB of memory; 3.0 MiB are free")


def test_where_nothing_is_known_everything_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortage, "free_memory", lambda: None)
    check_memory(MODEL, 2**60)
    with (
        pytest.raises(MemoryShortageError, match="not so much is free"),
        reporting_shortage(MODEL, 1),
    ):
        raise MemoryError


def _caused(cause: Exception) -> CheckpointError:
    error = CheckpointError(MODEL, "cannot be mapped")
    error.__cause__ = cause
    return error


@pytest.mark.usefixtures("_three_mebibytes")
@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("unable to mmap 9 bytes from file <a>: Cannot allocate memory (12)"),
        _caused(OSError(errno.ENOMEM, "Cannot allocate memory")),
    ],
)
def test_memory_that_has_run_out_is_told(error: Exception) -> None:
    assert is_out_of_memory(error)
    told = pytest.raises(MemoryShortageError, match=r"3\.0 MiB are free")
    with told as caught, reporting_shortage(MODEL, 2**30):
        raise error
    assert caught.value.__cause__ is error


class OutOfMemoryError(RuntimeError):
    """As torch calls it on a GPU."""


@pytest.mark.usefixtures("_three_mebibytes")
def test_memory_of_a_gpu_is_told_where_that_has_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "free_bytes", lambda device: {"cuda": 7 * 2**20}[device])
    for error, free in ((OutOfMemoryError(), "7.0 MiB"), (MemoryError(), "3.0 MiB")):
        with (
            pytest.raises(MemoryShortageError, match=f"{free} are free"),
            reporting_shortage(MODEL, 1, device="cuda"),
        ):
            raise error

    def broken(_device: object) -> int:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(devices, "free_bytes", broken)
    with (
        pytest.raises(MemoryShortageError, match="not so much is free"),
        reporting_shortage(MODEL, 1, device="cuda"),
    ):
        raise OutOfMemoryError


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        _caused(OSError(errno.EIO, "Input/output error")),
        ValueError("Cannot allocate memory"),
    ],
)
def test_other_errors_pass(error: Exception) -> None:
    assert not is_out_of_memory(error)
    with pytest.raises(type(error)) as caught, reporting_shortage(MODEL, 1):
        raise error
    assert caught.value is error
