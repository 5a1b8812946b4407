"""Archives of arrays: what is read, and what is refused."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from model.errors import ForeignModelError
from model.exchange.imports.marian.npz import is_npz, open_npz
from support.marian_oracle import FIXTURES

OPTIONS = np.frombuffer(b"type: transformer\n\0\0\0", dtype=np.int8)


def written(path: Path, **arrays: np.ndarray) -> Path:
    np.savez(path, **{"special:model.yml": OPTIONS, **arrays})
    return path


def test_arrays_are_those_that_numpy_reads() -> None:
    path = FIXTURES / "student" / "model.npz"
    file = open_npz(path)
    with np.load(path) as arrays:
        assert set(arrays) == {*file.tensors, "special:model.yml"}
        for name, tensor in file.tensors.items():
            found = tensor.read()
            assert isinstance(found, torch.Tensor)
            assert found.shape == tensor.shape
            np.testing.assert_array_equal(found.numpy(), arrays[name])
    assert file.options["dim-vocabs"] == [425, 425]


def test_all_nuls_at_the_end_of_the_options_are_left_out(tmp_path: Path) -> None:
    assert open_npz(written(tmp_path / "m.npz")).options == {"type": "transformer"}


def test_deflated_arrays_and_columns_first_are_read(tmp_path: Path) -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    arrays = {"special:model.yml": OPTIONS, "W": np.asfortranarray(values)}
    np.savez_compressed(tmp_path / "m.npz", **arrays)
    found = open_npz(tmp_path / "m.npz").tensors["W"].read()
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), values)


def test_arrays_of_objects_are_never_unpickled(tmp_path: Path) -> None:
    path = written(tmp_path / "m.npz", bad=np.array([{}], dtype=object), worse=np.zeros(2))
    with pytest.raises(ForeignModelError) as caught:
        open_npz(path)
    assert len(caught.value.problems) == 2
    assert "'bad' is of type |O" in str(caught.value)
    assert "'worse' is of type <f8" in str(caught.value)


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_weights_of_bytes_are_refused_by_name(tmp_path: Path, kind: type[np.generic]) -> None:
    quanta = np.full((3, 4), 127, dtype=kind)
    path = written(tmp_path / "m.npz", a_W=quanta, b_W=quanta, c_W=np.zeros(2, np.float16))
    with pytest.raises(ForeignModelError) as caught:
        open_npz(path)
    reason = "is of bytes, which only the options are; weights are float32 or float16"
    assert caught.value.problems == (f"'a_W' {reason}", f"'b_W' {reason}")


def test_an_array_that_says_more_than_it_has_is_refused(tmp_path: Path) -> None:
    data = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        data, {"descr": "<f4", "fortran_order": False, "shape": (2**40, 2**20)}
    )
    with zipfile.ZipFile(tmp_path / "m.npz", "w") as archive:
        options = io.BytesIO()
        np.save(options, OPTIONS)
        archive.writestr("special:model.yml.npy", options.getvalue())
        archive.writestr("W.npy", data.getvalue())
    with pytest.raises(ForeignModelError, match=r"'W' of shape .* needs"):
        open_npz(tmp_path / "m.npz")


@pytest.mark.parametrize(
    "header", [b"", b"(" * 3000, b"{'descr': ", b"\0" * 60, b"{'shape': 1}", b"'" * 77]
)
def test_headers_that_are_none_are_refused(tmp_path: Path, header: bytes) -> None:
    with zipfile.ZipFile(tmp_path / "m.npz", "w") as archive:
        array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
        archive.writestr("special:model.yml.npy", b"no array")
        archive.writestr("W.npy", array)
    with pytest.raises(ForeignModelError) as caught:
        open_npz(tmp_path / "m.npz")
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("keep", [0, 10, 1000, 200_000])
def test_a_file_cut_short_is_refused(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "m.npz"
    path.write_bytes((FIXTURES / "student" / "model.npz").read_bytes()[:keep])
    assert is_npz(path) == (keep >= 1000)  # by how it begins, so that whoever converts it is told
    assert not is_npz(path.rename(tmp_path / "m.zip"))
    (tmp_path / "m.zip").rename(path)
    with pytest.raises(ForeignModelError, match="damaged archive"):
        open_npz(path)


@pytest.mark.parametrize("begin", [10, 600_000])
def test_an_array_damaged_within_lzma_is_refused(tmp_path: Path, begin: int) -> None:
    """In its header, and in its values, which are read later."""
    path, values = tmp_path / "m.npz", io.BytesIO()
    np.save(values, np.random.default_rng(0).random(300_000, dtype=np.float32))
    with zipfile.ZipFile(written(tmp_path / "whole.npz")) as whole:
        options = whole.read("special:model.yml.npy")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("special:model.yml.npy", options)
        archive.writestr("W.npy", values.getvalue(), zipfile.ZIP_LZMA)
        start = archive.getinfo("W.npy").header_offset + 30 + len("W.npy")
    data = bytearray(path.read_bytes())
    first = start + begin
    data[first : first + 30_000] = b"\xff" * 30_000
    path.write_bytes(data)
    with pytest.raises(ForeignModelError, match="damaged archive"):
        open_npz(path).tensors["W"].read()


def test_options_that_are_no_mapping_are_refused(tmp_path: Path) -> None:
    aliases = b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
    odd = (b"a: !!bool x\n", b"a: !!timestamp x\n", b'a: !!int ""\n', b"a: " + b"9" * 5000)
    for text in (
        b"- a\n",
        b"a: [",
        b"[" * 5000,
        b"{" * 2**19,
        b"- " * 2**18,
        b"\xff",
        aliases,
        *odd,
    ):
        array = np.frombuffer(text, dtype=np.uint8)
        np.savez(tmp_path / "m.npz", **{"special:model.yml": array})
        with pytest.raises(ForeignModelError, match="has options that are no"):
            open_npz(tmp_path / "m.npz")
