"""Packed weights in a folder: one copy for all, and never anything but what was written."""

import errno
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from model.checkpoint.files.checksums import fingerprint
from model.loading import Runnable, load_for_decoding
from model.native import kernels, packed_folder
from model.native.packed_folder import PackedFolder
from model.offline.translator import Translator
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

pytestmark = pytest.mark.skipif(
    kernels.find_problem() is not None, reason=f"no kernels here: {kernels.find_problem()}"
)
TEXTS = ["The cat sees the river again.", "A letter!"]
IMAGE_BEGIN = 2 * 2**20


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("packed") / "tiny", quantise=True)


@pytest.fixture
def folder(tmp_path: Path) -> PackedFolder:
    return PackedFolder(path=tmp_path / "cache" / "packed", max_bytes=2**30)


def load(checkpoint: Path, folder: PackedFolder | None) -> Runnable:
    return load_for_decoding(checkpoint, compute_type="int8", num_threads=1, packed_folder=folder)


def translations(runnable: Runnable) -> list[object]:
    return [*Translator(runnable, max_rows=8).translate(TEXTS, EN_ZH)]


def the_file(folder: PackedFolder) -> Path:
    (path,) = folder.path.iterdir()
    return path


def sum_of(name: str, process: str, path: Path) -> int:
    """Bytes that a process has of a file, by a line of the kernel's account of it."""
    account = Path(f"/proc/{process}/smaps").read_text(encoding="utf-8")
    parts = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", account, flags=re.MULTILINE)
    mapped = [part for part in parts if part.split("\n", 1)[0].endswith(str(path))]
    return sum(int(re.search(rf"^{name}: +(\d+) kB", part, re.MULTILINE)[1]) for part in mapped)  # type: ignore[index]  # it is there


def test_mapped_weights_translate_as_packed_ones_do(checkpoint: Path, folder: PackedFolder) -> None:
    expected = translations(load(checkpoint, None))
    first = load(checkpoint, folder)
    assert translations(first) == expected
    path = the_file(folder)
    assert path.name == f"{fingerprint(checkpoint)}-{kernels.load().layout}.packed"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    written = path.stat().st_ino
    assert translations(load(checkpoint, folder)) == expected
    assert path.stat().st_ino == written


def test_two_processes_have_one_copy(checkpoint: Path, folder: PackedFolder) -> None:
    """The second one maps the file without torch, and reads all of it."""
    here = load(checkpoint, folder)
    translations(here)
    code = """
import sys
from pathlib import Path
from model.native import kernels
from model.native.packed_folder import PackedFolder

module = kernels.load()
found = PackedFolder(path=Path(sys.argv[1]), max_bytes=2**30).find(sys.argv[2], module)
print(sum(sum(part) for part in found._memory.parts), flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", code, str(folder.path), fingerprint(checkpoint)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert int(other.stdout.readline()) > 0
        path = the_file(folder)
        num_resident = sum_of("Rss", str(other.pid), path)
        num_own = sum_of("Pss", str(other.pid), path)
        num_here = sum_of("Rss", "self", path)
        other.communicate()
    assert num_resident * 1024 >= path.stat().st_size - IMAGE_BEGIN
    assert num_here > num_resident / 2
    assert num_own < 0.8 * num_resident  # half, of what both have
    assert translations(here) == translations(load(checkpoint, None))


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


DAMAGES: list[Callable[[Path], object]] = [
    lambda path: flip(path, 0),
    lambda path: flip(path, 100),
    lambda path: flip(path, IMAGE_BEGIN + 5000),
    lambda path: flip(path, -1),
    lambda path: os.truncate(path, path.stat().st_size - 1),
    lambda path: os.truncate(path, 10),
    lambda path: os.truncate(path, 0),
    lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    lambda path: path.chmod(0o660),
    lambda path: path.write_bytes(b"dragopak" + b"\xff" * 50),
]


def test_a_file_that_is_not_as_it_was_written_is_packed_anew(
    checkpoint: Path, folder: PackedFolder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="dragoman")
    load(checkpoint, folder)
    path = the_file(folder)
    good = path.read_bytes()
    for damage in DAMAGES:
        damage(path)
        load(checkpoint, folder)
        assert path.read_bytes() == good
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(caplog.records) == len(DAMAGES)
    assert {record.message for record in caplog.records} == {"packed_weights_not_used"}


def test_a_file_of_another_checkpoint_is_not_taken_for_this_one(
    checkpoint: Path, folder: PackedFolder
) -> None:
    load(checkpoint, folder)
    module = kernels.load()
    other = folder.path / f"{'0' * 64}-{module.layout}.packed"
    other.write_bytes(the_file(folder).read_bytes())
    other.chmod(0o600)
    assert folder.find("0" * 64, module) is None
    assert not other.exists()


def test_a_link_is_not_followed(checkpoint: Path, folder: PackedFolder, tmp_path: Path) -> None:
    load(checkpoint, folder)
    path = the_file(folder)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert folder.find(fingerprint(checkpoint), kernels.load()) is None


def test_a_folder_of_somebody_else_is_not_used(
    checkpoint: Path, folder: PackedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(checkpoint, folder)
    path = the_file(folder)
    folder.path.chmod(0o777)
    assert folder.find(fingerprint(checkpoint), kernels.load()) is None
    folder.path.chmod(0o700)
    assert folder.find(fingerprint(checkpoint), kernels.load()) is not None
    user = os.geteuid()
    monkeypatch.setattr(packed_folder.os, "geteuid", lambda: user + 1)
    assert folder.find(fingerprint(checkpoint), kernels.load()) is None
    assert path.exists()


def test_without_a_place_for_it_everyone_packs_for_themselves(
    checkpoint: Path, folder: PackedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = translations(load(checkpoint, None))
    folder.path.parent.write_bytes(b"a file where a folder should be")
    assert translations(load(checkpoint, folder)) == expected
    folder.path.parent.unlink()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(packed_folder.os, "write", full)
        assert translations(load(checkpoint, folder)) == expected
    assert list(folder.path.iterdir()) == []
    small = PackedFolder(path=folder.path, max_bytes=IMAGE_BEGIN)
    assert translations(load(checkpoint, small)) == expected
    assert list(folder.path.iterdir()) == []


def test_no_digest_is_made_of_what_there_is_no_room_for(
    checkpoint: Path, folder: PackedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(packed_folder, "_header")
    load(checkpoint, PackedFolder(path=folder.path, max_bytes=IMAGE_BEGIN))
    assert list(folder.path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_a_file_system_without_hard_links_keeps_them_too(
    checkpoint: Path, folder: PackedFolder, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def no_links(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    expected = translations(load(checkpoint, None))
    assert translations(load(checkpoint, folder)) == expected
    written = the_file(folder).stat().st_ino
    monkeypatch.setattr(PackedFolder, "find", lambda *_: None)
    load(checkpoint, folder)
    assert the_file(folder).stat().st_ino == written, "who was first stays"


def test_any_other_fault_of_a_link_is_logged_and_leaves_nothing(
    checkpoint: Path,
    folder: PackedFolder,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    caplog.set_level("INFO", logger="dragoman")
    monkeypatch.setattr(Path, "hardlink_to", broken)
    load(checkpoint, folder)
    assert list(folder.path.iterdir()) == []
    assert [record.message for record in caplog.records] == ["packed_weights_not_kept"]


def test_what_was_not_used_for_longest_makes_room(checkpoint: Path, folder: PackedFolder) -> None:
    load(checkpoint, folder)
    path = the_file(folder)
    size = path.stat().st_size
    bounded = PackedFolder(path=folder.path, max_bytes=3 * size)
    others = [folder.path / f"{name * 64}-panels-1.packed" for name in "ab"]
    abandoned = folder.path / f".{path.name}.partial"
    for age, other in enumerate([path, *others, abandoned]):
        other.write_bytes(b"\0" * size)
        os.utime(other, (time.time() - 7200 + age,) * 2)
    path.unlink()
    (folder.path / f"{'c' * 64}-panels-1.packed").write_bytes(b"\0" * size)
    load(checkpoint, bounded)
    left = {one.name[0] for one in folder.path.iterdir()}
    assert left == {path.name[0], "b", "c"}


def test_a_file_that_somebody_else_has_written_meanwhile_stays(
    checkpoint: Path, folder: PackedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(checkpoint, folder)
    path = the_file(folder)
    inode = path.stat().st_ino
    aside = path.with_name("aside")
    path.rename(aside)
    write = packed_folder._write

    def slowly(*arguments: object) -> None:
        write(*arguments)  # type: ignore[arg-type]  # as it was called
        aside.rename(path)

    monkeypatch.setattr(packed_folder, "_write", slowly)
    load(checkpoint, folder)
    assert the_file(folder).stat().st_ino == inode


def test_a_file_of_a_program_that_packs_otherwise_is_packed_anew(
    checkpoint: Path,
    folder: PackedFolder,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="dragoman")
    expected = translations(load(checkpoint, None))
    described = packed_folder._Description
    with monkeypatch.context() as patch:
        patch.setattr(
            packed_folder, "_Description", lambda **said: described(**{**said, "matrices": {}})
        )
        patch.setattr(PackedFolder, "find", lambda *_: None)
        load(checkpoint, folder)
    useless = the_file(folder).stat().st_ino
    assert translations(load(checkpoint, folder)) == expected
    assert the_file(folder).stat().st_ino != useless
    (record,) = caplog.records
    assert record.message == "packed_weights_not_used"
    assert translations(load(checkpoint, folder)) == expected


def test_a_folder_that_cannot_be_written_is_read(
    checkpoint: Path, folder: PackedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(checkpoint, folder)

    def read_only(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(packed_folder.os, "utime", read_only)
    assert folder.find(fingerprint(checkpoint), kernels.load()) is not None
