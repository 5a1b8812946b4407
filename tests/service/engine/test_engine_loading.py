import pytest
import torch

from model.checkpoint.checksums import fingerprint
from model.errors import CheckpointError, DeviceError
from service.engine.loading import load_lanes, resolve_device
from service.engine.messages import Configure


def ticking():
    """A clock that is one second later every time it is read."""
    seconds = 0.0

    def clock() -> float:
        nonlocal seconds
        seconds += 1.0
        return seconds

    return clock


def configuration(*paths, **limits) -> Configure:
    return Configure(checkpoint_paths=tuple(map(str, paths)), num_threads=1, device="cpu", **limits)


def test_loading_warms_up_and_leaves_the_sessions_empty(checkpoint_path):
    configure = configuration(checkpoint_path, checkpoint_path, max_rows=8, max_slots=3)
    lanes, ready = load_lanes(configure, clock=ticking())
    for lane in lanes:
        assert lane.is_idle
        snapshot = lane.snapshot()
        assert (snapshot.num_rows, snapshot.max_rows, snapshot.max_slots) == (0, 8, 3)
        assert snapshot.num_steps == 0
    assert (ready.device, ready.num_threads, ready.max_rows) == ("cpu", 1, 8)
    assert [loaded.name for loaded in ready.checkpoints] == ["tiny", "tiny"]
    for loaded in ready.checkpoints:
        assert (loaded.max_source_length, loaded.max_target_length) == (64, 64)
        assert loaded.max_prefix_length == 1
    assert ready.load_seconds > 0
    assert ready.warmup_seconds > 0


@pytest.mark.parametrize(("max_rows", "max_slots"), [(1, 1), (3, 8)])
def test_a_session_of_any_size_is_warmed_up(checkpoint_path, max_rows, max_slots):
    configure = configuration(checkpoint_path, max_rows=max_rows, max_slots=max_slots)
    [lane], _ = load_lanes(configure, clock=ticking())
    assert lane.is_idle


def test_a_checkpoint_that_is_not_the_one_the_front_has_read_is_refused(checkpoint_path):
    known = fingerprint(checkpoint_path)
    configure = configuration(checkpoint_path, fingerprints=(known,))
    assert len(load_lanes(configure, clock=ticking())[0]) == 1
    other = configuration(checkpoint_path, fingerprints=("0" * 64,))
    with pytest.raises(CheckpointError, match="was replaced since it was read"):
        load_lanes(other, clock=ticking())


def test_a_checkpoint_that_is_not_there_is_named(checkpoint_path, tmp_path):
    with pytest.raises(CheckpointError, match="nowhere"):
        load_lanes(configuration(checkpoint_path, tmp_path / "nowhere"), clock=ticking())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_asking_for_a_missing_device_is_an_error_and_auto_is_not():
    with pytest.raises(DeviceError, match="'cuda'"):
        resolve_device("cuda")
    assert resolve_device("auto") == torch.device("cpu")


@pytest.mark.gpu
def test_auto_takes_the_gpu():
    assert resolve_device("auto").type == "cuda"
    assert resolve_device("cpu").type == "cpu"
