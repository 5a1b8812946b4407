import errno
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from model.errors import TrainingError
from model.train.data.batching import BatchPosition
from model.train.saved.state import (
    PREVIOUS_STATE_FILE,
    STATE_FILE,
    Progress,
    list_averages,
    list_snapshots,
    load_latest_snapshot,
    load_snapshot,
    load_state,
    prune,
    save_average,
    save_snapshot,
    save_state,
    snapshot_path,
    update_of,
)
from support.logged import fields_of

PROGRESS = Progress(
    update=7,
    position=BatchPosition(epoch=2, index=5),
    elapsed_seconds=1.5,
    num_source_tokens=100,
    num_target_tokens=90,
    scoring="bleu beams:1",
    best_score=12.5,
    best_update=6,
    num_snapshots_since_best=1,
    scored_update=6,
    snapshot_updates=(4, 6),
    num_skipped_updates=4,
    num_skipped_in_a_row=1,
)


def parts() -> tuple[nn.Linear, torch.optim.Adam]:
    layer = nn.Linear(3, 2)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.1)
    layer(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    return layer, optimiser


def save(folder: Path, layer: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    save_state(folder, transformer=layer, optimiser=optimiser, progress=PROGRESS, fingerprint="abc")


def load(folder: Path, layer: nn.Module, optimiser: torch.optim.Optimizer) -> Progress:
    return load_state(
        folder,
        transformer=layer,
        optimiser=optimiser,
        fingerprint="abc",
        device=torch.device("cpu"),
    ).progress


def test_a_state_comes_back_whole(tmp_path: Path) -> None:
    layer, optimiser = parts()
    save(tmp_path, layer, optimiser)
    expected = torch.rand(3)
    other, other_optimiser = parts()
    assert load(tmp_path, other, other_optimiser) == PROGRESS
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(other.weight, layer.weight)
    moments = other_optimiser.state_dict()["state"][0]
    assert torch.equal(moments["exp_avg"], optimiser.state_dict()["state"][0]["exp_avg"])


def test_a_crash_while_saving_leaves_the_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer, optimiser = parts()
    save(tmp_path, layer, optimiser)
    before = (tmp_path / STATE_FILE).read_bytes()

    def crash(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("model.train.files.os.fsync", crash)
    with pytest.raises(TrainingError, match=r"state\.pt: the state of update 7 cannot be written"):
        save(tmp_path, layer, optimiser)
    assert not (tmp_path / "state.partial").exists()
    assert (tmp_path / STATE_FILE).read_bytes() == before


def test_a_state_that_may_not_be_read_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    layer, optimiser = parts()
    save(tmp_path, layer, optimiser)
    (tmp_path / STATE_FILE).rename(tmp_path / PREVIOUS_STATE_FILE)
    (tmp_path / STATE_FILE).symlink_to(tmp_path / STATE_FILE)
    with pytest.raises(TrainingError, match=r"state\.pt: cannot be read: Too many levels of"):
        load(tmp_path, layer, optimiser)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda counters: counters.pop("scoring"), "scoring"),
        (lambda counters: counters.update(zeal=3), "zeal"),
    ],
)
def test_a_state_with_other_counters_is_of_another_version(
    tmp_path: Path, change: Callable[[dict[str, object]], object], named: str
) -> None:
    layer, optimiser = parts()
    save(tmp_path, layer, optimiser)
    state = torch.load(tmp_path / STATE_FILE, weights_only=True)
    change(state["progress"])
    torch.save(state, tmp_path / STATE_FILE)
    message = rf"state\.pt: the state is of another version of Dragoman, .*: {named}$"
    with pytest.raises(TrainingError, match=message):
        load(tmp_path, layer, optimiser)


def test_a_state_of_before_ties_were_broken_goes_on(tmp_path: Path) -> None:
    layer, optimiser = parts()
    save(tmp_path, layer, optimiser)
    state = torch.load(tmp_path / STATE_FILE, weights_only=True)
    del state["progress"]["best_ties"]
    torch.save(state, tmp_path / STATE_FILE)
    assert load(tmp_path, layer, optimiser) == PROGRESS


def test_another_experiments_state_is_refused(tmp_path: Path) -> None:
    layer, optimiser = parts()
    save(tmp_path, layer, optimiser)
    with pytest.raises(TrainingError, match=r"another experiment \(fingerprint abc, now xyz\)"):
        load_state(
            tmp_path,
            transformer=layer,
            optimiser=optimiser,
            fingerprint="xyz",
            device=torch.device("cpu"),
        )


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("damage", [flip_a_byte, cut_in_half, Path.unlink])
def test_the_state_before_a_damaged_one_is_taken_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None]
) -> None:
    layer, optimiser = parts()
    save(tmp_path, layer, optimiser)
    before = layer.weight.detach().clone()
    with torch.no_grad():
        layer.weight.add_(1.0)
    save(tmp_path, layer, optimiser)
    damage(tmp_path / STATE_FILE)
    other, other_optimiser = parts()
    assert load(tmp_path, other, other_optimiser) == PROGRESS
    assert torch.equal(other.weight, before)
    [fields] = fields_of(caplog, "previous_state_taken")
    assert "state.pt: no state to resume from" in str(fields["reason"])
    assert (fields["path"], fields["update"]) == (str(tmp_path / PREVIOUS_STATE_FILE), 7)
    damage(tmp_path / PREVIOUS_STATE_FILE)
    with pytest.raises(TrainingError, match="no state to resume from"):
        load(tmp_path, other, other_optimiser)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
        MemoryError("no room"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
)
@pytest.mark.parametrize("place", ["torch.load", "torch.optim.Optimizer.load_state_dict"])
def test_a_state_for_which_there_is_no_memory_is_not_taken_for_a_damaged_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    place: str,
) -> None:
    layer, optimiser = parts()
    save(tmp_path, layer, optimiser)
    save(tmp_path, layer, optimiser)
    assert (tmp_path / PREVIOUS_STATE_FILE).exists()

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(place, fail)
    with pytest.raises(TrainingError, match=r"state\.pt: not enough memory to load the state"):
        load(tmp_path, layer, optimiser)
    assert not fields_of(caplog, "previous_state_taken")


def test_a_missing_state_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="no state to resume from"):
        load(tmp_path, *parts())


class Bomb:
    """Unpickling it would write a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.write_text, (self._path, "boom"))


def test_a_state_that_would_run_code_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with (tmp_path / STATE_FILE).open("wb") as output:
        torch.save({"fingerprint": "abc", "bomb": Bomb(trace)}, output)
    with pytest.raises(TrainingError, match="no state to resume from"):
        load(tmp_path, *parts())
    (tmp_path / STATE_FILE).write_bytes(pickle.dumps(Bomb(trace)))
    with pytest.raises(TrainingError, match="no state to resume from"):
        load(tmp_path, *parts())
    assert not trace.exists()


def test_snapshots_come_back_and_old_ones_go(tmp_path: Path) -> None:
    layer, _ = parts()
    for update in (5, 10, 15, 20):
        save_snapshot(tmp_path, layer, update)
    assert torch.equal(load_snapshot(snapshot_path(tmp_path, 15))["weight"], layer.weight)
    prune(list_snapshots(tmp_path), num_kept=2, keep={5})
    assert list_snapshots(tmp_path) == [snapshot_path(tmp_path, n) for n in (5, 15, 20)]


@pytest.mark.parametrize(
    ("num_kept", "keep", "left"),
    [
        (1, set(), [20]),
        (3, set(), [10, 15, 20]),
        (4, set(), [5, 10, 15, 20]),
        (9, set(), [5, 10, 15, 20]),
        (1, {5, 10, 99}, [5, 10, 20]),
        (2, {20}, [15, 20]),
    ],
)
def test_the_latest_snapshots_stay_and_those_to_keep(
    tmp_path: Path, num_kept: int, keep: set[int], left: list[int]
) -> None:
    layer, _ = parts()
    for update in (5, 10, 15, 20):
        save_snapshot(tmp_path, layer, update)
    prune(list_snapshots(tmp_path), num_kept=num_kept, keep=keep)
    assert list_snapshots(tmp_path) == [snapshot_path(tmp_path, update) for update in left]


def test_snapshots_come_by_their_updates_however_many_digits_these_have(tmp_path: Path) -> None:
    layer, other = nn.Linear(3, 2), nn.Linear(3, 2)
    for update in (99_999_999, 2, 100_000_001):
        save_snapshot(tmp_path, layer if update == 100_000_001 else other, update)
    found = [update_of(path) for path in list_snapshots(tmp_path)]
    assert found == [2, 99_999_999, 100_000_001]
    load_latest_snapshot(tmp_path, other)
    assert torch.equal(other.weight, layer.weight)


@pytest.mark.parametrize("from_end", range(4, 4 * 8 + 1, 4))
def test_a_flipped_bit_in_a_snapshot_is_noticed(tmp_path: Path, from_end: int) -> None:
    path = save_snapshot(tmp_path, parts()[0], 1)  # six weights and two biases, four bytes each
    data = bytearray(path.read_bytes())
    data[-from_end] ^= 1
    path.write_bytes(data)
    with pytest.raises(TrainingError, match="not a snapshot: its weights are damaged"):
        load_snapshot(path)


def test_snapshots_of_older_versions_have_no_checksum(tmp_path: Path) -> None:
    layer, _ = parts()
    path = snapshot_path(tmp_path, 1)
    save_file(dict(layer.state_dict()), path)
    assert torch.equal(load_snapshot(path)["weight"], layer.weight)


def test_files_beside_the_snapshots_are_left_alone(tmp_path: Path) -> None:
    layer, _ = parts()
    path = save_snapshot(tmp_path, layer, 123_456_789)
    average = save_average(tmp_path, layer, 5)
    for name in ("snapshot-00000005-copy", "snapshot-best", "snapshot-5", "ema-00000005 (1)"):
        path.with_name(f"{name}.safetensors").write_bytes(b"mine")
    assert list_snapshots(tmp_path) == [path]
    assert list_averages(tmp_path) == [average]


def test_other_users_may_read_weights_as_they_may_the_state(tmp_path: Path) -> None:
    path = save_snapshot(tmp_path, parts()[0], 5)
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_damaged_snapshot_is_named(tmp_path: Path) -> None:
    path = snapshot_path(tmp_path, 1)
    path.write_bytes(b"not safetensors")
    with pytest.raises(TrainingError, match=r"snapshot-00000001\.safetensors: not a snapshot"):
        load_snapshot(path)
