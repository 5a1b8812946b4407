import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from model.errors import ForeignModelError
from model.exchange.imports.huggingface.weights import HuggingFaceWeights, TensorMap

TENSORS = {"a.weight": torch.arange(6.0).reshape(2, 3), "b.weight": torch.ones(4)}


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (exec, ("raise SystemExit(3)",))


def index(folder: Path, name: str, **files: str) -> None:
    weight_map = {key.replace("_", "."): file for key, file in files.items()}
    (folder / name).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def whole_safetensors(folder: Path, tensors: dict[str, Tensor]) -> None:
    save_file(tensors, folder / "model.safetensors")


def sharded_safetensors(folder: Path, tensors: dict[str, Tensor]) -> None:
    for number, (name, value) in enumerate(tensors.items()):
        save_file({name: value}, folder / f"model-{number}.safetensors")
    index(
        folder,
        "model.safetensors.index.json",
        a_weight="model-0.safetensors",
        b_weight="model-1.safetensors",
    )


def whole_pickle(folder: Path, tensors: dict[str, Tensor]) -> None:
    torch.save(tensors, folder / "pytorch_model.bin")


def old_pickle(folder: Path, tensors: dict[str, Tensor]) -> None:
    torch.save(tensors, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)


def sharded_pickle(folder: Path, tensors: dict[str, Tensor]) -> None:
    for number, (name, value) in enumerate(tensors.items()):
        torch.save({name: value}, folder / f"pytorch_model-{number}.bin")
    index(
        folder,
        "pytorch_model.bin.index.json",
        a_weight="pytorch_model-0.bin",
        b_weight="pytorch_model-1.bin",
    )


WRITERS = [whole_safetensors, sharded_safetensors, whole_pickle, old_pickle, sharded_pickle]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_tensors_are_read_whatever_file_they_are_in(
    tmp_path: Path, write: object, dtype: torch.dtype
) -> None:
    assert callable(write)
    write(tmp_path, {name: value.to(dtype) for name, value in TENSORS.items()})
    weights = HuggingFaceWeights(tmp_path)
    assert set(weights) == TENSORS.keys()
    for name, value in TENSORS.items():
        assert weights.shape(name) == tuple(value.shape)
        assert torch.equal(weights.read(name), value.to(dtype))


def problems_of(folder: Path) -> str:
    with pytest.raises(ForeignModelError) as caught:
        HuggingFaceWeights(folder)
    assert caught.value.path == folder
    return "; ".join(caught.value.problems)


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_pickle_that_wants_code_is_refused_and_not_run(tmp_path: Path, is_zip: bool) -> None:
    torch.save({"a": Bomb()}, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=is_zip)
    assert "wants to run code, and is not read" in problems_of(tmp_path)


def test_a_plain_pickle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))
    assert "pytorch_model.bin" in problems_of(tmp_path)


@pytest.mark.parametrize("write", WRITERS)
def test_truncated_files_are_one_error_that_names_them(tmp_path: Path, write: object) -> None:
    assert callable(write)
    write(tmp_path, TENSORS)
    paths = [path for path in tmp_path.iterdir() if path.suffix != ".json"]
    for path in paths:
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    problem = problems_of(tmp_path)
    assert all(path.name in problem for path in paths)


def test_what_is_no_tensor_is_named(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(2), "epoch": 3}, tmp_path / "pytorch_model.bin")
    assert problems_of(tmp_path) == "pytorch_model.bin: 'epoch' is no tensor"
    torch.save([torch.ones(2)], tmp_path / "pytorch_model.bin")
    assert problems_of(tmp_path) == "pytorch_model.bin is no table of tensors"


def test_integers_are_refused(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2, dtype=torch.int32)}, tmp_path / "model.safetensors")
    assert problems_of(tmp_path) == "a has type I32; only floats can be converted"


def test_shards_must_be_there_and_in_the_folder(tmp_path: Path) -> None:
    index(tmp_path, "model.safetensors.index.json", a="../other.safetensors", b="b.safetensors")
    problem = problems_of(tmp_path)
    assert "'../other.safetensors', which is no plain file name" in problem
    assert "b.safetensors is missing" in problem
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    assert "has no weight_map" in problems_of(tmp_path)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    assert "has no weights" in problems_of(tmp_path)


def test_a_map_tells_what_is_missing_and_what_is_left(tmp_path: Path) -> None:
    more = {"a.copy": TENSORS["a.weight"].clone(), "left": torch.ones(1), "odd": torch.zeros(2, 3)}
    whole_safetensors(tmp_path, TENSORS | more)
    tensors = TensorMap(HuggingFaceWeights(tmp_path))
    tensors.linear("ours", "a")
    tensors.take("flat", "b.weight", shape=(2, 2))
    tensors.drop_copies("a.weight", "a.weight", "a.copy", "odd", "absent")
    assert tensors.problems == [
        "a.bias is missing",
        "odd differs from a.weight, with which it is tied",
    ]
    assert tensors.unused == ("left",)
    tensors.drop("left", "nothing")
    assert tensors.unused == ()
    assert tensors.tensors["flat"].shape == (2, 2)
    read = tensors.tensors["ours.weight"].read()
    assert isinstance(read, Tensor)
    assert torch.equal(read, TENSORS["a.weight"])


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning")
@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (
            lambda: torch.eye(3).to_sparse(),
            "'a.weight' is stored as torch.sparse_coo; only plain arrays",
        ),
        (
            lambda: torch.eye(3).to_sparse_csr(),
            "'a.weight' is stored as torch.sparse_csr; only plain",
        ),
        (
            lambda: torch.empty(3, 3, device="meta"),
            "'a.weight' is of the device meta: its values are not",
        ),
        (
            lambda: torch.tensor(3.0),
            "'a.weight' is a single number; a weight has one dimension or more",
        ),
    ],
)
def test_tensors_of_a_pickle_that_are_no_plain_arrays_are_named(
    tmp_path: Path, make: Callable[[], Tensor], problem: str
) -> None:
    whole_pickle(tmp_path, {**TENSORS, "a.weight": make()})
    assert problem in problems_of(tmp_path)


def test_a_single_number_is_no_weight(tmp_path: Path) -> None:
    whole_safetensors(tmp_path, {**TENSORS, "a.weight": torch.tensor(3.0)})
    assert problems_of(tmp_path).startswith("a.weight is a single number")


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123456\n"


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_what_stands_for_a_file_in_a_clone_without_git_lfs_is_told(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(POINTER)
    with pytest.raises(ForeignModelError) as caught:
        HuggingFaceWeights(tmp_path)
    assert caught.value.problems == (
        f"{name} is a pointer of git-lfs and not the file; `git lfs pull` in the clone fetches it",
    )
