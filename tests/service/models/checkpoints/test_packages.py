import os
from pathlib import Path

import pytest

from model.errors import ConfigError
from service.models.checkpoints.discovery import find_checkpoints, load_checkpoints, scan
from service.models.checkpoints.packages import Package, find_packages, tidy
from service.models.checkpoints.watch import FolderWatch
from support.tiny_checkpoint import write_tiny_checkpoint


@pytest.fixture
def package(tmp_path: Path) -> Package:
    (tmp_path / "en-de.argosmodel").write_bytes(b"one")
    [package] = find_packages(tmp_path)
    return package


def publish(package: Package) -> None:
    """As a conversion does, with a checkpoint of another making."""
    package.directory.parent.mkdir(exist_ok=True)
    write_tiny_checkpoint(package.unpublished, name=package.name)
    package.publish(package.version())


def test_only_files_of_that_name_that_nobody_has_converted_are_packages(tmp_path: Path) -> None:
    for name in ("b.argosmodel", "a.argosmodel", ".c.argosmodel", "d.zip", "e.argosmodel"):
        (tmp_path / name).touch()
    (tmp_path / "e").mkdir()
    (tmp_path / "f.argosmodel").mkdir()
    assert [one.name for one in find_packages(tmp_path)] == ["a", "b"]
    (tmp_path / "config.json").touch()
    assert find_packages(tmp_path) == ()


def test_a_package_stands_for_its_checkpoint_from_its_conversion_to_its_end(
    package: Package, tmp_path: Path
) -> None:
    assert not package.is_converted()
    with pytest.raises(ConfigError, match=r"\.argosmodel files alone"):
        find_checkpoints(tmp_path)
    publish(package)
    assert package.is_converted()
    assert find_checkpoints(tmp_path) == (package.directory,)
    [found] = load_checkpoints(tmp_path).usable
    assert found.manifest.name == "en-de"
    package.file.unlink()
    with pytest.raises(ConfigError, match=r"neither a config\.json"):
        scan(tmp_path)


def test_another_file_is_converted_anew_and_the_earlier_checkpoint_stays_until_then(
    package: Package, tmp_path: Path
) -> None:
    publish(package)
    package.file.write_bytes(b"another")
    assert not package.is_converted()
    assert find_checkpoints(tmp_path) == (package.directory,)
    publish(package)
    assert package.is_converted()
    assert {path.name for path in package.directory.parent.iterdir()} == {"en-de", ".en-de.source"}


@pytest.mark.parametrize("lost", ["record", "checkpoint"])
def test_a_conversion_that_was_cut_off_is_done_again(package: Package, lost: str) -> None:
    publish(package)
    if lost == "record":
        (package.directory.parent / ".en-de.source").write_bytes(b"\xff")
    else:
        package.directory.rename(package.directory.with_name(".en-de.old"))
    assert not package.is_converted()
    publish(package)
    assert package.is_converted()


def test_what_is_left_of_other_packages_is_removed(package: Package, tmp_path: Path) -> None:
    publish(package)
    kept = set(package.directory.parent.iterdir())
    kept.add(package.directory.parent / "..en-de.new.0.converting")
    for name in ("..en-de.new.0.converting", "gone", "..gone.new.1.converting"):
        (package.directory.parent / name).mkdir()
    (package.directory.parent / ".gone.source").touch()
    tidy(tmp_path)
    assert set(package.directory.parent.iterdir()) == kept


def test_the_watch_sees_packages_and_not_what_is_made_of_them(
    package: Package, tmp_path: Path
) -> None:
    watch = FolderWatch(tmp_path)
    publish(package)
    assert [watch.is_due() for _ in range(2)] == [False] * 2
    os.utime(package.file, ns=(1, 1))
    assert [watch.is_due() for _ in range(2)] == [False, True]
