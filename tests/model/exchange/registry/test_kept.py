"""Files of which no checksum is published are held to the one that they came with."""

import hashlib
from pathlib import Path

import pytest

from model.exchange.registry.cache import Cache
from model.exchange.registry.kept import known_content
from model.exchange.registry.listing import Checksum, Content, Listing, RemoteFile
from model.exchange.registry.pulling import missing_bytes
from support.registry_mirror import Mirror, Waits, quick_downloader

DATA = bytes(range(256)) * 16
PATH = "/models/vocab.spm"
KEPT = ".vocab.spm.sha256"
SHA256 = Checksum(kind="sha256", digest=hashlib.sha256(DATA).hexdigest())


@pytest.fixture
def target(mirror: Mirror, tmp_path: Path) -> Path:
    mirror.files[PATH] = DATA
    return tmp_path / "vocab.spm"


def unlisted(mirror: Mirror, size: int | None = None) -> RemoteFile:
    return RemoteFile(path="vocab.spm", url=mirror.url + PATH, stored=Content(size=size))


def test_the_checksum_of_what_came_is_kept_beside_it(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    file = unlisted(mirror)
    assert known_content(target, file) is None
    quick_downloader(waits).fetch(file, target)
    assert (target.parent / KEPT).read_text() == SHA256.digest
    assert known_content(target, file) == Content(checksum=SHA256)
    mirror.asked.clear()
    quick_downloader(waits).fetch(file, target)
    assert mirror.asked == []


@pytest.mark.parametrize("damage", [b"", DATA[:-1], DATA[:-1] + b"!"])
@pytest.mark.parametrize("size", [None, len(DATA)])
def test_what_is_another_file_since_comes_again(
    mirror: Mirror, target: Path, waits: Waits, damage: bytes, size: int | None
) -> None:
    file = unlisted(mirror, size)
    quick_downloader(waits).fetch(file, target)
    target.write_bytes(damage)
    quick_downloader(waits).fetch(file, target)
    assert target.read_bytes() == DATA


@pytest.mark.parametrize("kept", [None, b"", b"no checksum", b"\xff" * 64, b"0" * 64, b"0" * 65])
def test_a_file_without_its_checksum_comes_again(
    mirror: Mirror, target: Path, waits: Waits, kept: bytes | None
) -> None:
    target.write_bytes(b"something")
    if kept is not None:
        (target.parent / KEPT).write_bytes(kept)
    quick_downloader(waits).fetch(unlisted(mirror), target)
    assert target.read_bytes() == DATA
    assert (target.parent / KEPT).read_text() == SHA256.digest


def test_a_file_that_does_not_get_its_name_leaves_no_checksum(
    mirror: Mirror, target: Path, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def failing(path: Path, place: Path) -> Path:
        if place == target:
            assert (target.parent / KEPT).read_text() == SHA256.digest
            raise OSError(5, "Input/output error")
        return replace(path, place)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", failing)
        with pytest.raises(OSError, match="Input/output"):
            quick_downloader(waits).fetch(unlisted(mirror), target)
    assert list(target.parent.iterdir()) == []


def test_a_file_without_its_checksum_is_still_to_come(mirror: Mirror, cache: Cache) -> None:
    file = unlisted(mirror, len(DATA))
    listing = Listing(name="made", folder="made", version="1", registry="made", files=(file,))
    folder = cache.model_folder("made", "1", "made")
    folder.mkdir(parents=True)
    (folder / file.path).write_bytes(DATA)
    assert missing_bytes(listing, cache) == len(DATA)
    (folder / KEPT).write_text(SHA256.digest)
    assert missing_bytes(listing, cache) == 0


def test_a_checksum_that_is_listed_is_the_one_that_counts(mirror: Mirror, target: Path) -> None:
    listed = Content(size=len(DATA), checksum=SHA256)
    (target.parent / KEPT).write_text("0" * 64)
    file = RemoteFile(path="vocab.spm", url=mirror.url + PATH, stored=listed)
    assert known_content(target, file) == listed
