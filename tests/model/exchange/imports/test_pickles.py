"""Files of PyTorch: what is the file's fault, and that memory which runs out is not."""

import pickle
from pathlib import Path

import pytest
import torch

from model.errors import ForeignModelError
from model.exchange.imports.huggingface.weights import HuggingFaceWeights
from model.exchange.imports.opennmt.file import read_opennmt
from model.exchange.imports.pickles import pickles_refused, unpickled

SHORTAGES = [
    MemoryError(),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
    OSError(12, "Cannot allocate memory"),
]


def test_tensors_are_read_and_stay_mapped(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save({"a": torch.arange(3)}, path)
    with pickles_refused(path):
        value = unpickled(path)
    assert isinstance(value, dict)
    assert value["a"].tolist() == [0, 1, 2]


def test_code_is_not_run_and_a_damaged_file_is_one_problem(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save({"a": path.unlink}, path)
    with (
        pytest.raises(ForeignModelError, match="wants to run code, and is not read; it asks for x"),
        pickles_refused(path, ["x"]),
    ):
        unpickled(path)
    assert path.exists()
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ForeignModelError), pickles_refused(path):
        unpickled(path)


@pytest.mark.parametrize("shortage", SHORTAGES, ids=lambda error: type(error).__name__)
def test_memory_that_runs_out_is_not_the_files_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shortage: Exception
) -> None:
    """In both formats alike; the reading itself fails here as PyTorch's does."""

    def fail(*_arguments: object, **_more: object) -> object:
        raise shortage

    path = tmp_path / "pytorch_model.bin"
    torch.save({"model": {}, "generator": {}, "vocab": {}, "opt": {}}, path)
    monkeypatch.setattr(torch, "load", fail)
    with pytest.raises(type(shortage)) as caught:
        read_opennmt(path)
    assert caught.value is shortage
    with pytest.raises(type(shortage)) as caught:
        HuggingFaceWeights(tmp_path)
    assert caught.value is shortage


def test_other_errors_of_a_file_are_named_by_their_type(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    with (
        pytest.raises(ForeignModelError, match=r"cannot be read \(EOFError\)"),
        pickles_refused(path),
    ):
        pickle.loads(b"")
