from dataclasses import replace

import pytest
from safetensors.torch import load_file, save_file

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.files.checksums import fingerprint
from model.checkpoint.shortlist import add_shortlist
from model.config import LengthLimits
from model.decode.backends.cuda.buckets import rounded_up
from model.decode.footprint import (
    EAGER_FLOAT32_TABLES,
    LEAST_TABLES,
    check_footprint,
    least_limits,
    working_bytes,
)
from model.decode.session import SessionLimits
from model.errors import DecodingError
from model.loading import load_for_decoding
from model.native import kernels
from model.text.languages.tags import LanguagePair
from model.text.subwords.pieces import PieceModel
from service.engine.errors import CheckpointsError
from service.engine.messages import Configure
from service.engine.worker import loading
from service.engine.worker.loading import load_lanes
from service.engine.worker.pacing import MIN_TOKEN_BUDGET
from service.engine.worker.runner import Runner
from support.damaged_checkpoints import WEIGHTS_FILE, list_anew, set_scales
from support.shortlists import random_shortlist
from support.tiny_checkpoint import EN_ZH, ZH_EN, tiny_network, write_tiny_checkpoint


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
        counters = lane.counters()
        assert (counters.num_rows, counters.max_rows, counters.max_slots) == (0, 8, 3)
        assert counters.num_steps == 0
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
    with pytest.raises(CheckpointsError, match="was replaced since it was read"):
        load_lanes(other, clock=ticking())


@pytest.mark.skipif(kernels.find_problem() is not None, reason="no kernels here")
def test_packed_weights_are_kept_where_the_configuration_says(checkpoint_path, tmp_path):
    folder = tmp_path / "packed"
    configure = configuration(checkpoint_path, packed_folder=str(folder), packed_bytes=2**24)
    load_lanes(configure, clock=ticking())
    (path,) = folder.iterdir()
    assert path.name.startswith(fingerprint(checkpoint_path))


def test_a_checkpoint_that_is_not_there_is_named(checkpoint_path, tmp_path):
    with pytest.raises(CheckpointsError, match="nowhere"):
        load_lanes(configuration(checkpoint_path, tmp_path / "nowhere"), clock=ticking())


def test_all_checkpoints_at_fault_are_told_by_their_places(checkpoint_path, tmp_path):
    paths = (tmp_path / "one", checkpoint_path, tmp_path / "two")
    with pytest.raises(CheckpointsError) as caught:
        load_lanes(configuration(*paths), clock=ticking())
    reasons = caught.value.at_fault
    assert reasons.keys() == {0, 2}
    assert reasons[0].startswith(f"{tmp_path}/one")
    assert reasons[2].startswith(f"{tmp_path}/two")
    assert str(caught.value) == f"{reasons[0]}; {reasons[2]}"


def test_a_network_that_cannot_be_warmed_up_is_at_fault(checkpoint_path, monkeypatch):
    def refuse(*_arguments):
        raise DecodingError("no finite score")

    monkeypatch.setattr(Runner, "warm_up", refuse)
    with pytest.raises(CheckpointsError) as caught:
        load_lanes(configuration(checkpoint_path), clock=ticking())
    [(place, reason)] = caught.value.at_fault.items()
    assert place == 0
    assert reason.endswith("cannot be served: a first translation has no finite score")


def test_the_arithmetic_is_described_with_its_reason(checkpoint_path):
    _, ready = load_lanes(configuration(checkpoint_path, compute_type="float32"), clock=ticking())
    [loaded] = ready.checkpoints
    assert (loaded.compute_type, loaded.compute_reason) == ("float32", "asked_for")
    assert not loaded.is_slow


def test_a_network_that_is_decoded_without_caches_is_served_and_is_slow(tmp_path):
    network = replace(tiny_network(), position="rope")
    directory = write_tiny_checkpoint(tmp_path / "tiny", network=network)
    lanes, ready = load_lanes(configuration(directory), clock=ticking())
    assert len(lanes) == 1
    [loaded] = ready.checkpoints
    assert (loaded.compute_type, loaded.compute_reason) == ("float32", "network")
    assert loaded.is_slow


@pytest.mark.parametrize("compute_type", ["auto", "float32"])
@pytest.mark.parametrize("scale", [1e30, 3e36, 3e38])
def test_weights_that_give_no_finite_score_are_refused_by_name(tmp_path, scale, compute_type):
    directory = write_tiny_checkpoint(tmp_path / "tiny", quantise=True)
    set_scales(directory, scale)
    configure = configuration(directory, compute_type=compute_type)
    with pytest.raises(CheckpointsError, match=r"finite") as refusal:
        load_lanes(configure, clock=ticking())
    assert refusal.value.at_fault[0].startswith(str(directory / WEIGHTS_FILE))


def test_a_prefix_that_gives_no_finite_score_is_found_wherever_its_pair_stands(tmp_path):
    told = LanguagePair(source="en", target="de", source_prefix=("▁river",))
    network = replace(tiny_network(), share_embeddings=False)
    directory = write_tiny_checkpoint(
        tmp_path / "tiny", pairs=(EN_ZH, ZH_EN, told), network=network, quantise=True
    )
    assert len(load_lanes(configuration(directory), clock=ticking())[0]) == 1
    [index] = PieceModel((directory / "source.spm").read_bytes()).own_ids("river")
    tensors = load_file(directory / WEIGHTS_FILE)
    tensors["source_embedding.weight.scale"][index] = 1e36
    save_file(tensors, directory / WEIGHTS_FILE)
    list_anew(directory)
    with pytest.raises(CheckpointsError, match="no finite score"):
        load_lanes(configuration(directory), clock=ticking())


@pytest.mark.parametrize(
    ("limits", "prefix"),
    [
        (LengthLimits(max_source_length=131_072, max_target_length=64), ()),
        (LengthLimits(max_source_length=64, max_target_length=131_072), ()),
        (LengthLimits(max_source_length=64, max_target_length=64), ("▁river",) * 200),
    ],
)
def test_limits_that_need_more_memory_than_there_is_are_refused_with_the_file(
    tmp_path, monkeypatch, limits, prefix
):
    pair = replace(EN_ZH, target_prefix=prefix)
    directory = write_tiny_checkpoint(tmp_path / "tiny", pairs=(pair,), limits=limits)
    configure = configuration(directory, max_rows=128, max_slots=64)
    monkeypatch.setattr(loading, "memory_limit", lambda _: 8 * 2**20)
    with pytest.raises(CheckpointsError, match=r"128 rows and 64 slots; .*MAX_ROWS") as refusal:
        load_lanes(configure, clock=ticking())
    reason = refusal.value.at_fault[0]
    assert reason.startswith(str(directory / "config.json"))
    for value in (limits.max_source_length, limits.max_target_length, len(prefix)):
        assert f" {value}" in reason
    fewer = configuration(directory, max_rows=1, max_slots=1)
    monkeypatch.setattr(loading, "memory_limit", lambda _: 2**30)
    if not prefix:
        assert len(load_lanes(fewer, clock=ticking())[0]) == 1


def test_on_a_gpu_a_start_needs_only_the_least_and_says_what_fits(
    checkpoint_path, monkeypatch, caplog
):
    """The device is a CPU that says it is a GPU with little memory."""
    configure = configuration(
        checkpoint_path, max_rows=4096, max_slots=1024, compute_type="float32"
    )
    manifest = read_manifest(checkpoint_path)
    limits = loading._session_limits(manifest, configure)
    least = check_footprint(manifest, least_limits(limits), None)
    assert 8 * least < check_footprint(manifest, limits, None)
    loading._check_footprints(configure, least, device="cuda")
    for limit, device in ((least - 1, "cuda"), (8 * least, "cpu")):
        with pytest.raises(CheckpointsError, match="there are at most"):
            loading._check_footprints(configure, limit, device=device)
    num_free = 8 * least + working_bytes(manifest.network)
    monkeypatch.setattr(loading, "free_bytes", lambda _: num_free)
    caplog.set_level("INFO")
    load_lanes(configure, clock=ticking())
    [said] = [record.fields for record in caplog.records if record.message == "gpu_rows"]
    assert (said["checkpoint"], said["max_rows"], said["free_bytes"]) == ("tiny", 4096, num_free)
    assert 64 * 8 <= said["rows_of_longest"] <= said["rows_of_64_tokens"] < 4096


def test_float32_on_a_cpu_asks_for_the_caches_that_it_has_itself(checkpoint_path) -> None:
    manifest = read_manifest(checkpoint_path)
    for compute_type, tables in (("float32", EAGER_FLOAT32_TABLES), ("int8", LEAST_TABLES)):
        configure = configuration(checkpoint_path, compute_type=compute_type)
        limits = loading._session_limits(manifest, configure)
        needed = check_footprint(manifest, limits, None, tables=tables)
        loading._check_footprints(configure, needed, device="cpu")
        with pytest.raises(CheckpointsError, match="there are at most"):
            loading._check_footprints(configure, needed - 1, device="cpu")


def test_checkpoints_share_the_memory_that_there_is(checkpoint_path, monkeypatch):
    manifest = read_manifest(checkpoint_path)
    configure = configuration(checkpoint_path, checkpoint_path, max_rows=8, max_slots=4)
    one = check_footprint(manifest, loading._session_limits(manifest, configure), None)
    monkeypatch.setattr(loading, "memory_limit", lambda _: 2 * one)
    assert len(load_lanes(configure, clock=ticking())[0]) == 2
    monkeypatch.setattr(loading, "memory_limit", lambda _: 2 * one - 1)
    with pytest.raises(CheckpointsError, match="there are at most") as refusal:
        load_lanes(configure, clock=ticking())
    assert list(refusal.value.at_fault) == [1]


def test_shortlists_are_used_where_they_are_asked_for(checkpoint_path, tmp_path):
    shortlist = random_shortlist(600, 600, num_best=4)
    add_shortlist(checkpoint_path, tmp_path / "listed", shortlist, note="")
    configure = configuration(tmp_path / "listed", checkpoint_path, shortlist=True)
    with pytest.raises(CheckpointsError, match="has no lexical shortlist") as caught:
        load_lanes(configure, clock=ticking())
    assert caught.value.at_fault.keys() == {1}
    lanes, _ = load_lanes(configuration(tmp_path / "listed", shortlist=True), clock=ticking())
    assert lanes[0].is_idle


def test_steps_are_recorded_for_the_largest_number_of_sentences_first() -> None:
    assert loading.recorded_counts(24) == [24, 16, 12, 8, 6, 4, 3, 2, 1]
    assert loading.recorded_counts(5) == [5, 4, 3, 2, 1]
    assert loading.recorded_counts(1) == [1]
    for most in range(1, 70):
        buckets = {rounded_up(count, minimum=1, maximum=most) for count in range(1, most + 1)}
        assert set(loading.recorded_counts(most)) == buckets


@pytest.mark.parametrize("is_recorded", [True, False])
def test_the_default_beam_is_warmed_up_and_where_programs_are_made_its_alignment_too(
    checkpoint_path, is_recorded
) -> None:
    checkpoint = load_for_decoding(checkpoint_path)
    limits = SessionLimits(max_rows=24, max_slots=8, max_source_length=32, max_target_length=32)
    batches = list(
        loading._warmup_batches(checkpoint, limits, beam_size=6, is_recorded=is_recorded)
    )
    counts = [
        len(requests)
        for requests in batches
        if requests[0].search.beam_size == 6 and not requests[0].search.with_alignment
    ]
    assert counts == ([4, 3, 2, 1] if is_recorded else [4, 1])
    searches = [request.search for requests in batches for request in requests]
    aligned = {search.beam_size for search in searches if search.with_alignment}
    assert aligned == ({6, 1} if is_recorded else set())


def test_loading_leaves_attention_of_its_device_to_kernels_that_plan_nothing(
    checkpoint_path, monkeypatch
):
    asked = []
    monkeypatch.setattr(loading, "use_unplanned_attention", asked.append)
    load_lanes(configuration(checkpoint_path), clock=ticking())
    assert asked == ["cpu"]


@pytest.mark.parametrize(("device", "budget"), [("cpu", MIN_TOKEN_BUDGET), ("cuda", 4096)])
def test_a_lane_is_paced_by_measured_times_but_on_a_gpu(checkpoint_path, device, budget):
    """The lane is opened on a CPU in any case; only its pacing knows the device's name."""
    configure = configuration(checkpoint_path, max_rows=8, max_slots=2)
    checkpoint = loading._load(configure, 0, "cpu")
    lane = loading._open_lane(
        checkpoint_path, checkpoint, configure, device=device, clock=ticking()
    )
    pacing = lane._runner.pacing
    pacing.encoded(64, seconds=10.0)
    pacing.stepped(seconds=0.001)
    assert pacing.token_budget(ceiling=4096) == budget
