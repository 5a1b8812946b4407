"""Marian's binary files: every arrangement is the .npz it was made from; the rest is refused."""

import gzip
import struct
from pathlib import Path

import pytest
import torch

from model.errors import ForeignModelError
from model.exchange.imports.imported import QuantisedRows
from model.exchange.imports.marian.bin import is_bin, open_bin
from model.exchange.imports.marian.files import MarianTensor
from model.exchange.imports.marian.npz import open_npz
from support.marian_oracle import FIXTURES

PLAIN, AGAIN = 0x10001, 0x4101
F32, I8 = 0x404, 0x101
OPTIONS = b"type: transformer\n\0\0"


def written(path: Path, *tensors: tuple[str, int, tuple[int, ...], bytes], gap: int = 3) -> Path:
    """A file as Marian writes it; each tensor is name, type, shape, payload."""
    tensors = (("special:model.yml", I8, (len(OPTIONS),), OPTIONS), *tensors)
    names = [name.encode() + b"\0" for name, _, _, _ in tensors]
    parts = [struct.pack("<QQ", 1, len(tensors))]
    parts += [
        struct.pack("<QQQQ", len(name), code, len(shape), len(data))
        for name, (_, code, shape, data) in zip(names, tensors, strict=True)
    ]
    parts += names
    parts += [struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in tensors]
    parts += [struct.pack("<Q", gap), bytes(gap), *(data for *_, data in tensors)]
    path.write_bytes(b"".join(parts))
    return path


def widened(tensor: MarianTensor) -> torch.Tensor:
    """Values with Marian's shape."""
    values = tensor.read()
    if isinstance(values, QuantisedRows):
        values = values.quanta * values.scale[:, None]
    return values.T if tensor.has_output_rows else values


@pytest.mark.parametrize("kind", ["", "ssse3", "avx2", "avx512"])
def test_every_arrangement_is_the_npz_but_for_rounding(kind: str) -> None:
    floats = open_npz(FIXTURES / "int8" / "model.npz")
    file = open_bin(FIXTURES / "int8" / f"model.intgemm8{kind}.bin")
    assert file.options == floats.options
    assert list(file.tensors) == list(floats.tensors)
    num_matrices = 0
    for name, tensor in file.tensors.items():
        expected = floats.tensors[name].read()
        assert isinstance(expected, torch.Tensor)
        assert tensor.shape == expected.shape
        half_step = expected.abs().max() / 127 / 2
        is_int8 = isinstance(tensor.read(), QuantisedRows)
        num_matrices += is_int8
        found = widened(tensor)
        assert (found - expected).abs().max() <= (half_step * 1.0001 if is_int8 else 0)
    assert num_matrices == 14


def test_int8_matrices_stay_int8_with_outputs_first() -> None:
    tensor = open_bin(FIXTURES / "int8" / "model.intgemm8.bin").tensors["encoder_l1_self_Wq"]
    rows = tensor.read()
    assert isinstance(rows, QuantisedRows)
    assert rows.quanta.dtype is torch.int8
    assert len(set(rows.scale.tolist())) == 1


def random_quanta(rows: int, columns: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(-127, 128, (rows, columns), generator=generator, dtype=torch.int8)


@pytest.mark.parametrize("code", [PLAIN, AGAIN])
def test_products_are_transposed_and_embeddings_are_not(tmp_path: Path, code: int) -> None:
    quanta, multiplier = random_quanta(5, 3), 12.5
    payload = quanta.numpy().tobytes() + struct.pack("<f", multiplier) + bytes(256 - 19)
    path = written(
        tmp_path / "m.bin", ("l_W", code, (3, 5), payload), ("Wemb", code, (5, 3), payload)
    )
    file = open_bin(path)
    expected = quanta / multiplier
    torch.testing.assert_close(widened(file.tensors["l_W"]), expected.T)
    torch.testing.assert_close(widened(file.tensors["Wemb"]), expected)
    assert file.tensors["Wemb"].shape == (5, 3)


def test_multipliers_of_activations_are_read_whatever_type_they_have(tmp_path: Path) -> None:
    one = struct.pack("<bf", 64, 2.0)
    path = written(
        tmp_path / "m.bin",
        ("a_QuantMultA", F32, (1,), struct.pack("<f", 7.5)),
        ("Wemb_QuantMultA", AGAIN, (1,), one),
    )
    file = open_bin(path)
    assert widened(file.tensors["a_QuantMultA"]).tolist() == [7.5]
    assert widened(file.tensors["Wemb_QuantMultA"]).tolist() == [32.0]


def test_a_gzipped_file_is_the_same(tmp_path: Path) -> None:
    source = FIXTURES / "int8" / "model.intgemm8.bin"
    path = tmp_path / "model.bin.gz"
    path.write_bytes(gzip.compress(source.read_bytes()))
    assert is_bin(path)
    file, packed = open_bin(source), open_bin(path)
    for name, tensor in file.tensors.items():
        assert torch.equal(widened(packed.tensors[name]), widened(tensor))
    path.write_bytes(path.read_bytes()[:-2000])
    assert not is_bin(path)
    with pytest.raises(ForeignModelError, match="no whole gzip file"):
        open_bin(path)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (I8, "int8 without a multiplier"),
        (0x13001, "intgemm8avx512vnni"),
        (0x802, "FBGEMM"),
        (0x1801, "FBGEMM"),
        (0x2801, "FBGEMM"),
        (0x999, "not known"),
    ],
)
def test_types_that_cannot_be_trusted_are_refused_by_name(
    tmp_path: Path, code: int, reason: str
) -> None:
    path = written(
        tmp_path / "m.bin", ("a_W", code, (8, 8), bytes(320)), ("b_W", code, (8, 8), bytes(320))
    )
    with pytest.raises(ForeignModelError, match=reason) as caught:
        open_bin(path)
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    ("tensor", "problem"),
    [
        (("a", F32, (4, 4), bytes(60)), "needs 64 bytes; it has 60"),
        (("a", F32, (4, 4), bytes(9000)), "needs 64 bytes; it has 9000"),
        (("a_W", PLAIN, (4, 4), bytes(16)), "needs 20 bytes; it has 16"),
        (("a", F32, (-4, 4), bytes(64)), "sizes start at 1"),
        (("a", F32, (2**30, 2**30), bytes(64)), "needs 4611686018427387904 bytes"),
        (("a_Wt", 0x11001, (33, 8), bytes(600)), "whole blocks of 32 × 8"),
        (("special:model.yml", F32, (1,), bytes(4)), "is there twice"),
    ],
)
def test_records_that_contradict_themselves_are_refused(
    tmp_path: Path, tensor: tuple[str, int, tuple[int, ...], bytes], problem: str
) -> None:
    with pytest.raises(ForeignModelError, match=problem):
        open_bin(written(tmp_path / "m.bin", tensor))


@pytest.mark.parametrize("multiplier", [0.0, -1.0, float("nan"), float("inf")])
def test_impossible_multipliers_are_refused(tmp_path: Path, multiplier: float) -> None:
    payload = bytes(16) + struct.pack("<f", multiplier)
    file = open_bin(written(tmp_path / "m.bin", ("a_W", PLAIN, (4, 4), payload)))
    with pytest.raises(ForeignModelError, match="has the multiplier"):
        file.tensors["a_W"].read()


@pytest.mark.parametrize("keep", [0, 7, 15, 100, 3000, 90_000])
def test_a_file_cut_short_is_refused(tmp_path: Path, keep: int) -> None:
    data = (FIXTURES / "int8" / "model.intgemm8.bin").read_bytes()
    path = tmp_path / "m.bin"
    path.write_bytes(data[:keep])
    is_behind_header = keep >= 3000
    assert is_bin(path) == is_behind_header
    told = f"is cut short: it has {keep} bytes" if is_behind_header else "m.bin"
    with pytest.raises(ForeignModelError, match=told):
        open_bin(path)


@pytest.mark.parametrize(
    "head",
    [
        struct.pack("<QQ", 2, 1),
        struct.pack("<QQ", 1, 2**60),
        struct.pack("<QQQQQQ", 1, 1, 2**62, F32, 1, 4),
        struct.pack("<QQQQQQ", 1, 1, 2, F32, 2**40, 4) + b"a\0",
    ],
)
def test_headers_that_want_too_much_are_refused(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(head + bytes(100))
    with pytest.raises(ForeignModelError):
        open_bin(path)


def test_a_file_that_shrinks_meanwhile_gives_an_error(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes((FIXTURES / "int8" / "model.intgemm8.bin").read_bytes())
    file = open_bin(path)
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(ForeignModelError, match="is cut short inside"):
        list(map(widened, file.tensors.values()))
