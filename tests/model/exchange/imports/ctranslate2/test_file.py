"""model.bin: every version that there was, and files that are damaged or hostile."""

import random
import struct
from pathlib import Path

import pytest
import torch
from torch import Tensor

from model.errors import ForeignModelError
from model.exchange.imports.ctranslate2.file import (
    NEWEST_VERSION,
    OLDEST_VERSION,
    VariableFile,
    specification_of,
)
from model.exchange.imports.imported import QuantisedRows
from support.ctranslate2_files import CODES, model_bytes, name_bytes

VERSIONS = range(OLDEST_VERSION, NEWEST_VERSION + 1)
ROWS = torch.tensor([[1.0, -2.0, 0.5], [4.0, 8.0, -127.0]])


def written(folder: Path, data: bytes) -> Path:
    path = folder / "model.bin"
    path.write_bytes(data)
    return path


def refused(path: Path) -> str:
    with pytest.raises(ForeignModelError) as caught:
        VariableFile(path)
    assert caught.value.path == path
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_read(tmp_path: Path, version: int) -> None:
    variables = {
        "table": ROWS,
        "count": torch.tensor(16, dtype=torch.int16),
        "flag": torch.tensor(1, dtype=torch.int8),
    }
    file = VariableFile(written(tmp_path, model_bytes(variables, version=version)))
    assert (file.version, file.specification, file.revision) == (version, "TransformerSpec", 7)
    assert torch.equal(file.values("table"), ROWS)
    assert torch.equal(file.values("table", 1, 2), ROWS[1:])
    assert (file.number("count"), file.number("flag"), file.number("other", 5.0)) == (16, 1, 5)
    assert specification_of(file.path) == "TransformerSpec"


@pytest.mark.parametrize("dtype", CODES)
def test_every_element_type_is_read(tmp_path: Path, dtype: torch.dtype) -> None:
    values = ROWS.to(dtype)
    file = VariableFile(written(tmp_path, model_bytes({"table": values})))
    assert torch.equal(file.values("table"), values)
    assert file.values("table").dtype is dtype


def test_int8_rows_are_kept_with_their_scales(tmp_path: Path) -> None:
    quanta = torch.tensor([[127, -127, 3], [0, 1, 2]], dtype=torch.int8)
    scale = torch.tensor([10.0, 4.0])
    file = VariableFile(written(tmp_path, model_bytes({"weight": quanta, "weight_scale": scale})))
    found = file.weight("weight", 1, 2)
    assert isinstance(found, QuantisedRows)
    assert torch.equal(found.quanta, quanta[1:])
    assert torch.equal(found.scale, 1 / scale[1:])


def test_a_value_that_we_cannot_store_makes_the_rows_floats(tmp_path: Path) -> None:
    quanta = torch.tensor([[-128, 1]], dtype=torch.int8)
    variables = {"weight": quanta, "weight_scale": torch.tensor([4.0])}
    found = VariableFile(written(tmp_path, model_bytes(variables))).weight("weight")
    assert isinstance(found, Tensor)
    assert found.tolist() == [[-32.0, 0.25]]


@pytest.mark.parametrize(("scale", "divisor"), [(torch.tensor(50.0), 50), (None, 1000)])
def test_int16_has_one_scale_or_the_old_one(
    tmp_path: Path, scale: Tensor | None, divisor: int
) -> None:
    quanta = torch.tensor([[500, -20]], dtype=torch.int16)
    variables = {"weight": quanta} | ({} if scale is None else {"weight_scale": scale})
    found = VariableFile(written(tmp_path, model_bytes(variables))).weight("weight")
    assert isinstance(found, Tensor)
    assert found[0].tolist() == pytest.approx((quanta[0] / divisor).tolist())


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), 1e-45])
def test_a_scale_that_is_no_positive_number_is_refused(tmp_path: Path, bad: float) -> None:
    quanta = torch.ones(2, 3, dtype=torch.int8)
    variables = {"weight": quanta, "weight_scale": torch.tensor([1.0, bad])}
    file = VariableFile(written(tmp_path, model_bytes(variables)))
    with pytest.raises(ForeignModelError, match="'weight_scale' has a scale that is not a"):
        file.weight("weight")


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_an_alias_is_its_variable_and_takes_its_scale_along(tmp_path: Path, version: int) -> None:
    variables = {"one/weight": ROWS.to(torch.int8), "one/weight_scale": torch.tensor([2.0, 4.0])}
    data = model_bytes(variables, version=version, aliases=[("two/weight", "one/weight")])
    file = VariableFile(written(tmp_path, data))
    assert file.variables["two/weight"] is file.variables["one/weight"]
    assert file.variables["two/weight_scale"] is file.variables["one/weight_scale"]


def test_words_of_older_files_are_read(tmp_path: Path) -> None:
    word = torch.tensor(list(b"</s>"), dtype=torch.uint8).view(torch.int8)
    variables = {"eos_token": word, "bad": torch.tensor([-1, -1], dtype=torch.int8), "table": ROWS}
    file = VariableFile(written(tmp_path, model_bytes(variables, version=5)))
    assert (file.text("eos_token", "x"), file.text("missing", "x")) == ("</s>", "x")
    for name, problem in (("bad", "is not UTF-8"), ("table", "is not a short text")):
        with pytest.raises(ForeignModelError, match=problem):
            file.text(name, "x")
    with pytest.raises(ForeignModelError, match=r"shape \[2, 3\]; it must be one value"):
        file.number("table")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused(tmp_path: Path, bad: float) -> None:
    file = VariableFile(written(tmp_path, model_bytes({"num_heads": torch.tensor(bad)})))
    with pytest.raises(ForeignModelError, match=r"'num_heads' is (nan|inf)"):
        file.number("num_heads")


def test_a_file_that_ends_anywhere_is_refused(tmp_path: Path) -> None:
    variables = {"weight": ROWS.to(torch.int8), "weight_scale": torch.tensor([2.0, 4.0])}
    whole = model_bytes(variables, aliases=[("other", "weight")])
    for size in range(len(whole)):
        assert "ends within" in refused(written(tmp_path, whole[:size]))
    assert "goes on for 1 bytes" in refused(written(tmp_path, whole + b"\0"))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (struct.pack("<I", 7), "has version 7; versions 2 to 6"),
        (struct.pack("<I", 1), "has version 1; versions 2 to 6"),
        (b"PK\x03\x04 and more", "has version"),
        (model_bytes({})[:-8] + struct.pack("<II", 2**32 - 1, 0), "4294967295 variables; at most"),
        (struct.pack("<IH", 6, 3) + b"abc", "a name without an end"),
        (struct.pack("<IH", 6, 3) + b"\xff\xff\0", "that is not UTF-8"),
        (model_bytes({}, aliases=[("one", "two")]), "an alias 'one' of 'two' that cannot be"),
        (
            model_bytes({"table": ROWS}, aliases=[("table", "table")]),
            "an alias 'table' of 'table' that cannot be",
        ),
        (model_bytes({"table": torch.zeros(0, 3)}), "at least one value"),
        (model_bytes({"table": torch.zeros([1] * 9)}), "has 9 dimensions; at most 8"),
        (model_bytes({"t": ROWS}).replace(b"t\0\2\2", b"t\0\2\3"), "has 24 bytes; it must have 36"),
        (model_bytes({"t": torch.ones(1)}).replace(b"\1\0\0\0\0\4", b"\1\0\0\0\x09\4"), "type 9"),
    ],
)
def test_a_hostile_file_is_one_clear_error(tmp_path: Path, data: bytes, problem: str) -> None:
    assert problem in refused(written(tmp_path, data))


def test_one_name_twice_is_refused(tmp_path: Path) -> None:
    data = model_bytes({"one": ROWS, "two": ROWS}).replace(b"two\0", b"one\0")
    assert "has 'one' twice" in refused(written(tmp_path, data))


def test_sizes_beyond_the_file_take_no_memory(tmp_path: Path) -> None:
    head = model_bytes({})[:-8] + struct.pack("<I", 1) + name_bytes("huge")
    sizes = struct.pack("<B3IBI", 3, *[2**32 - 1] * 3, 0, 2**32 - 1)
    assert "has 4294967295 bytes; it must have" in refused(written(tmp_path, head + sizes))


def test_flipped_bytes_are_refused_or_read_but_never_anything_else(tmp_path: Path) -> None:
    variables = {"weight": ROWS.to(torch.int8), "weight_scale": torch.tensor([2.0, 4.0])}
    whole, choices = model_bytes(variables, aliases=[("other", "weight")]), random.Random(5)
    num_refused = 0
    for _ in range(400):
        data = bytearray(whole)
        data[choices.randrange(len(data))] = choices.randrange(256)
        path = written(tmp_path, bytes(data))
        try:
            file = VariableFile(path)
            for name in file.variables:
                file.values(name)
        except ForeignModelError:
            num_refused += 1
    assert num_refused > 100


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    assert "is missing, or is not a file" in refused(tmp_path / "model.bin")
    assert "is missing, or is not a file" in refused(tmp_path)
    assert specification_of(tmp_path / "model.bin") is None
    assert specification_of(written(tmp_path, b"\6\0\0\0\1\0")) is None


def test_a_file_that_shrinks_meanwhile_is_refused(tmp_path: Path) -> None:
    whole = model_bytes({"table": ROWS})
    file = VariableFile(written(tmp_path, whole))
    written(tmp_path, whole[:-10])
    with pytest.raises(ForeignModelError, match="ends within 'table'"):
        file.values("table")
