"""Places of pulled checkpoints: a swap that stops anywhere leaves one of the two."""

import shutil
from pathlib import Path

import pytest

from model.checkpoint.description.config_file import read_manifest
from model.exchange.registry.cache import Cache
from service.cli.main import main
from support.made_imports import write_made_model
from support.registry_mirror import Mirror

Output = pytest.CaptureFixture[str]


class Stopped(BaseException):
    """Stands for Ctrl-C."""


FAULTS = [
    (error, num_moves, is_done)
    for error in (OSError(5, "Input/output error"), Stopped())
    for num_moves in (0, 1)
    for is_done in (True, False)
]
"""What is raised, after how many moves of a swap, and whether the next one is made before."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_swap_that_stops_between_its_moves_leaves_one_of_both(
    mirror: Mirror,
    package: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: tuple[BaseException, int, bool],
) -> None:
    error, num_moves, is_done = fault
    mirror.put_argos_package("en", "zh", package, version="1.9")
    assert main(["pull", "argos:en-zh"]) == 0
    place = tmp_path / "served" / "argos-en-zh"
    before = (place / "config.json").read_bytes()
    moves, rename = iter(range(9)), Path.rename

    def failing(path: Path, target: Path) -> Path:
        is_swap = path.parent == place.parent and not path.name.endswith(".converting")
        fails = is_swap and next(moves) == num_moves
        if fails and not is_done:
            raise error
        moved = rename(path, target)
        if fails:
            raise error
        return moved

    mirror.put_argos_package("en", "zh", package, version="1.10")
    words = ["pull", "argos:en-zh", "--replace", "--compute", "float32"]
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", failing)
        if isinstance(error, OSError):
            assert main(words) == 1
        else:
            with pytest.raises(Stopped):
                main(words)
    assert [path.name for path in place.parent.iterdir()] == ["argos-en-zh"]
    is_new = num_moves == 1 and is_done
    assert ((place / "config.json").read_bytes() == before) is not is_new
    assert main(words) == 0
    assert read_manifest(place).tensors["source_embedding.weight"].dtype == "float32"
    assert [path.name for path in place.parent.iterdir()] == ["argos-en-zh"]


def test_what_a_killed_swap_had_moved_aside_comes_back(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    mirror.put_argos_package("en", "zh", package, version="1.9")
    assert main(["pull", "argos:en-zh"]) == 0
    place = tmp_path / "served" / "argos-en-zh"
    place.rename(place.with_name(".argos-en-zh.old"))
    mirror.put_argos_package("en", "zh", package[:-100], version="1.10")
    assert main(["pull", "argos:en-zh"]) == 1
    assert "--replace puts version 1.10" in capsys.readouterr().err
    assert [path.name for path in place.parent.iterdir()] == ["argos-en-zh"]
    place.rename(place.with_name(".argos-en-zh.old"))
    assert main(["pull", "argos:en-zh", "--replace"]) == 1
    assert [path.name for path in place.parent.iterdir()] == ["argos-en-zh"]
    assert read_manifest(place).name == "argos-en-zh"


def test_a_link_is_not_replaced_and_that_is_said_before_the_download(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    path = mirror.put_argos_package("en", "zh", package, version="1.9")
    place = tmp_path / "served" / "argos-en-zh"
    assert main(["pull", "argos:en-zh"]) == 0
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    assert main(["pull", "argos:en-zh"]) == 0  # it is that already
    mirror.put_argos_package("en", "zh", package, version="1.10")
    mirror.asked.clear()
    assert main(["pull", "argos:en-zh", "--replace"]) == 1
    assert "is a link; --as gives another name" in capsys.readouterr().err
    (tmp_path / "elsewhere").rename(tmp_path / "gone")
    assert main(["pull", "argos:en-zh"]) == 1
    assert "is a link; --as gives another name" in capsys.readouterr().err
    assert mirror.bodies_of(path) == []
    assert place.is_symlink()


def test_a_link_that_was_left_aside_never_comes_back(
    mirror: Mirror, package: bytes, tmp_path: Path
) -> None:
    mirror.put_argos_package("en", "zh", package, version="1.9")
    place = tmp_path / "served" / "argos-en-zh"
    (tmp_path / "elsewhere").mkdir()
    place.parent.mkdir(exist_ok=True)
    place.with_name(".argos-en-zh.old").symlink_to(tmp_path / "elsewhere")
    assert main(["pull", "argos:en-zh"]) == 0
    assert not place.is_symlink()
    assert [path.name for path in place.parent.iterdir()] == ["argos-en-zh"]


def test_what_was_pulled_is_known_without_the_cache_and_under_another_name(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    mirror.put_argos_package("en", "zh", package, version="1.9")
    assert main(["pull", "argos:en-zh"]) == 0
    shutil.rmtree(tmp_path / "cache")
    assert main(["pull", "argos:en-zh"]) == 0
    place = tmp_path / "served" / "argos-en-zh"
    assert f"{place} is that already" in capsys.readouterr().err
    mirror.put_argos_package("en", "zh", package, version="1.10")
    shutil.rmtree(tmp_path / "cache")
    assert main(["pull", "argos:en-zh"]) == 1
    assert "version 1.9, int8; --replace puts version 1.10" in capsys.readouterr().err
    (tmp_path / "served").rename(tmp_path / "renamed")
    assert main(["pull", "argos:en-zh", "--replace", "--to", str(tmp_path / "renamed")]) == 0
    capsys.readouterr()
    assert main(["pull", "argos:en-zh", "--to", str(tmp_path / "renamed")]) == 0
    assert "is that already" in capsys.readouterr().err


def test_a_note_that_an_earlier_version_left_in_the_cache_counts(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    mirror.put_argos_package("en", "zh", package, version="1.9")
    assert main(["pull", "argos:en-zh"]) == 0
    place = tmp_path / "served" / "argos-en-zh"
    cache = Cache(root=tmp_path / "cache")
    (place / ".pulled.json").rename(cache.pulled(place))
    capsys.readouterr()
    assert main(["pull", "argos:en-zh"]) == 0
    assert "is that already" in capsys.readouterr().err
    assert main(["pull", "argos:en-zh", "--replace", "--compute", "float32"]) == 0
    assert not cache.pulled(place).exists()
    assert main(["pull", "argos:en-zh", "--compute", "float32"]) == 0
    assert "is that already" in capsys.readouterr().err


@pytest.mark.usefixtures("mirror")
def test_a_snapshot_of_the_hubs_cache_has_the_name_of_its_repository(
    tmp_path: Path, capsys: Output
) -> None:
    snapshot = tmp_path / "hub" / "models--owner--my-model" / "snapshots" / "0123456789ab"
    write_made_model(snapshot)
    assert main(["pull", str(snapshot)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'served' / 'my-model'}\n"
