import gzip
import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from model.errors import ForeignModelError
from model.exchange.imports import archives
from model.exchange.imports.archives import unpacked

FILES = {"model/config.json": b"{}", "model/weights/part.bin": bytes(range(256)) * 9}


def zip_of(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def tar_of(path: Path, files: dict[str, bytes], *, mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def problems_of(source: Path) -> str:
    with pytest.raises(ForeignModelError) as caught, unpacked(source):
        pass
    assert caught.value.path == source
    return "; ".join(caught.value.problems)


@pytest.mark.parametrize("kind", ["zip", "argosmodel", "tar.gz", "tar"])
def test_an_archive_is_a_folder_for_as_long_as_it_is_used(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"package.{kind}"
    if kind.startswith("tar"):
        tar_of(path, FILES, mode="w:gz" if kind == "tar.gz" else "w")
    else:
        zip_of(path, FILES)
    with unpacked(path) as folder:
        found = {
            str(file.relative_to(folder)): file.read_bytes()
            for file in folder.rglob("*")
            if file.is_file()
        }
        assert {f"model/{name}": data for name, data in found.items()} == FILES
    assert not folder.exists()


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_an_archive_of_several_files_is_a_folder_of_its_name(tmp_path: Path, kind: str) -> None:
    make = zip_of if kind == "zip" else tar_of
    with unpacked(make(tmp_path / f"opus-1.0.{kind}", {"a": b"1", "b": b"2"})) as folder:
        assert (folder.name, sorted(path.name for path in folder.iterdir())) == (
            "opus-1.0",
            ["a", "b"],
        )
    assert not folder.exists()


@pytest.mark.parametrize("name", [".tar.gz", "...zip", ".zip"])
def test_an_archive_without_a_name_is_a_folder_all_the_same(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"1")
        archive.writestr("b", b"2")
    with unpacked(path) as folder:
        assert {one.name for one in folder.iterdir()} == {"a", "b"}


def test_what_is_no_archive_is_itself(tmp_path: Path) -> None:
    np.savez(tmp_path / "marian.npz", a=np.zeros(3))
    torch.save({"a": torch.zeros(3)}, tmp_path / "weights.pt")
    (tmp_path / "text").write_text("no archive")
    (tmp_path / "empty").write_bytes(b"")
    for path in [tmp_path, *tmp_path.iterdir(), tmp_path / "missing"]:
        with unpacked(path) as found:
            assert found == path


def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with unpacked(tmp_path / "pipe") as found:
        assert found == tmp_path / "pipe"


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/../../outside", "a\\b", "c:d"])
@pytest.mark.parametrize("pack", [zip_of, tar_of])
def test_names_that_lead_out_are_refused(tmp_path: Path, pack: object, name: str) -> None:
    assert callable(pack)
    path = pack(tmp_path / "archive", {name: b"x", "fine": b"y"})
    problem = problems_of(path)
    assert "leads out of the archive's folder" in problem or "is no plain name" in problem
    assert "fine" not in problem
    assert [each.name for each in tmp_path.iterdir()] == ["archive"]


def test_links_are_refused(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    assert problems_of(tmp_path / "zip") == "'link' is a link or a device"
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
        with tarfile.open(tmp_path / "tar", "w") as tar:
            info = tarfile.TarInfo("link")
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
        assert problems_of(tmp_path / "tar") == "'link' is a link or a device"


@pytest.mark.parametrize("pack", [zip_of, tar_of])
def test_a_bomb_is_not_unpacked(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    path = pack(tmp_path / "bomb", {"zeros": bytes(80 * 2**20)})
    assert "at most 100 times as many are unpacked" in problems_of(path)


@pytest.mark.parametrize("pack", [zip_of, tar_of])
def test_files_and_bytes_have_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: object
) -> None:
    assert callable(pack)
    path = pack(tmp_path / "archive", {f"{number}": b"12345" for number in range(9)})
    monkeypatch.setattr(archives, "MAX_FILES", 8)
    monkeypatch.setattr(archives, "MAX_BYTES", 9)
    problem = problems_of(path)
    assert "at most 9 are unpacked" in problem
    if pack is zip_of:
        assert "has more than the 8 files" in problem


def test_a_header_that_claims_to_be_long_is_not_read(tmp_path: Path) -> None:
    info = tarfile.TarInfo("name")
    info.type, info.size = tarfile.XHDTYPE, 2**33
    (tmp_path / "tar").write_bytes(gzip.compress(info.tobuf() + bytes(2**12)))
    with unpacked(tmp_path / "tar") as found:  # not even taken for a tar
        assert found == tmp_path / "tar"


@pytest.mark.parametrize("pack", [zip_of, tar_of])
def test_a_truncated_archive_is_one_error(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    data = bytes(torch.randint(256, (60_000,), dtype=torch.uint8).tolist())
    path = pack(tmp_path / "archive", {"data": data})
    whole = path.read_bytes()
    middle = bytearray(whole)
    middle[30_000:30_100] = bytes(100)
    path.write_bytes(middle)
    assert "cannot be unpacked" in problems_of(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_damaged_member_of_any_compression_is_one_error(tmp_path: Path, method: int) -> None:
    path = tmp_path / "archive"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("data", bytes(torch.randint(256, (60_000,)).tolist()))
    data = bytearray(path.read_bytes())
    data[39:30_000] = b"\xff" * (30_000 - 39)
    path.write_bytes(data)
    assert "cannot be unpacked" in problems_of(path)


@pytest.mark.parametrize("size", [30, 30_000])
def test_a_zip_archive_without_its_end_is_truncated(tmp_path: Path, size: int) -> None:
    data = bytes(torch.randint(256, (60_000,), dtype=torch.uint8).tolist())
    path = zip_of(tmp_path / "package.argosmodel", {"data": data})
    path.write_bytes(path.read_bytes()[:size])
    assert problems_of(path) == "is a zip archive without its end: it is truncated"


def test_a_file_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("one", "1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("one", "2")
    assert problems_of(tmp_path / "zip") == "'one' is there twice"


def test_what_goes_on_behind_the_last_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tar_of(tmp_path / "a.tar.gz", FILES)
    with gzip.open(path, "rb") as packed:
        content = packed.read()
    with gzip.open(path, "wb", compresslevel=1) as packed:
        packed.write(content)
        for _ in range(64):
            packed.write(bytes(2**20))
    assert problems_of(path) == "goes on after its last file"
