"""The files of a listing: all or an error, by several processes at once."""

import multiprocessing
import os
from pathlib import Path

import pytest

from model.errors import ConfigError, RegistryError
from model.exchange.registry.cache import Cache, locked, part_of
from model.exchange.registry.listing import Content, Listing, RemoteFile
from model.exchange.registry.pulling import missing_bytes, pull
from support.registry_mirror import Fault, Mirror, Waits, quick_downloader

SIZES = {"a.bin": 200_000, "b.bin": 300_000, "folder/c.bin": 10}


def _listing(url: str) -> Listing:
    files = [
        RemoteFile(path=name, url=f"{url}/{name}", stored=Content(size=size))
        for name, size in SIZES.items()
    ]
    return Listing(name="a", folder="a", version="1", registry="test", files=tuple(files))


@pytest.fixture
def listing(mirror: Mirror) -> Listing:
    mirror.files.update({f"/{name}": os.urandom(size) for name, size in SIZES.items()})
    return _listing(mirror.url)


def test_all_files_are_there_or_an_error(
    listing: Listing, mirror: Mirror, cache: Cache, waits: Waits
) -> None:
    mirror.always["/b.bin"] = Fault(status=404)
    with pytest.raises(RegistryError, match=r"b\.bin"):
        pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    assert missing_bytes(listing, cache) == 300_010
    mirror.always.clear()
    mirror.asked.clear()
    folder = pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    assert [one.path for one in mirror.asked] == ["/b.bin", "/folder/c.bin"]
    assert missing_bytes(listing, cache) == 0
    for name in SIZES:
        assert (folder / name).read_bytes() == mirror.files[f"/{name}"]


def test_what_a_broken_download_left_is_not_counted_as_missing(
    listing: Listing, mirror: Mirror, cache: Cache, waits: Waits
) -> None:
    mirror.faults["/a.bin"] = [Fault(cut_after=150_000)]
    mirror.faults["/a.bin"] += [Fault(status=503)] * 4
    with pytest.raises(RegistryError):
        pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    assert missing_bytes(listing, cache) == 350_010


def test_a_disk_without_room_is_told_before_a_byte_comes(
    listing: Listing, mirror: Mirror, cache: Cache, waits: Waits
) -> None:
    with pytest.raises(ConfigError, match="500010 bytes are to come and 500010 are free"):
        pull(
            listing,
            cache,
            quick_downloader(waits),
            on_wait=lambda: None,
            free_bytes=lambda _: 500_010,
        )
    assert mirror.asked == []


def test_a_link_does_not_lead_out_of_the_folder(
    listing: Listing, cache: Cache, waits: Waits, tmp_path: Path
) -> None:
    folder = cache.model_folder("a", "1", "a")
    folder.mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "folder").symlink_to(outside)
    with pytest.raises(RegistryError, match="outside"):
        pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    assert list(outside.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_told(
    listing: Listing, cache: Cache, waits: Waits
) -> None:
    cache.root.write_bytes(b"a file")
    with pytest.raises(ConfigError, match=str(cache.root)):
        pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)


def _pull_elsewhere(url: str, root: Path, start: object) -> None:
    start.wait()  # type: ignore[attr-defined]  # an event of multiprocessing
    pull(_listing(url), Cache(root=root), quick_downloader(Waits()), on_wait=lambda: None)


def test_several_processes_pull_the_same_once(
    listing: Listing, mirror: Mirror, cache: Cache, waits: Waits
) -> None:
    context = multiprocessing.get_context("spawn")
    start = context.Event()
    others = [
        context.Process(target=_pull_elsewhere, args=(mirror.url, cache.root, start))
        for _ in range(3)
    ]
    for other in others:
        other.start()
    start.set()
    for other in others:
        other.join(timeout=60)
    assert [other.exitcode for other in others] == [0, 0, 0]
    assert sorted(one.path for one in mirror.asked) == [f"/{name}" for name in SIZES]
    folder = pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    assert (folder / "a.bin").read_bytes() == mirror.files["/a.bin"]


def test_whoever_waits_is_told(cache: Cache) -> None:
    folder = cache.model_folder("a", "1", "a")
    told: list[str] = []

    def tell() -> None:
        told.append("waits")
        raise InterruptedError

    with locked(folder, tell), pytest.raises(InterruptedError), locked(folder, tell):
        pass
    assert told == ["waits"]
    with locked(folder, tell):
        assert told == ["waits"]  # it is free again


def test_parts_of_paths_are_names_and_no_two_alike() -> None:
    texts = ["a", "A/b", "A-b", "../x", "..", ".", "", "x" * 300, "x" * 301, "模型", "a\0b"]
    parts = [part_of(text) for text in texts]
    assert len(set(parts)) == len(texts)
    for part in parts:
        assert part
        assert "/" not in part
        assert part[0] != "."
        assert len(part) < 120
