"""What a session takes at the least, compared with what the kernels and tensors really take."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.manifest import Manifest
from model.config import DecoderCell
from model.decode.backends.eager.backend import EagerBackend
from model.decode.backends.eager.cache import CrossCache, RowCache
from model.decode.backends.opening import cache_tables
from model.decode.footprint import (
    FEWEST_SLOTS,
    LEAST_TABLES,
    cache_bytes,
    check_footprint,
    fitting_rows,
    least_limits,
    table_bytes,
    working_bytes,
)
from model.errors import ConfigError
from model.nn.self_attention import SelfAttention
from model.nn.ssru import SSRU
from model.nn.transformer import Transformer
from model.request import SessionLimits
from model.system.devices import memory_limit
from model.system.host_memory import host_limit
from support.tiny_checkpoint import write_tiny_checkpoint

LIMITS = SessionLimits(max_rows=8, max_slots=3, max_source_length=40, max_target_length=30)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return read_manifest(write_tiny_checkpoint(tmp_path_factory.mktemp("footprint") / "tiny"))


def test_no_backend_keeps_less_than_the_sum(manifest: Manifest) -> None:
    device, dtype = torch.device("cpu"), torch.bfloat16
    rows = RowCache(
        SelfAttention(manifest.network).state_shapes(),
        num_layers=manifest.network.num_decoder_layers,
        max_rows=8,
        max_length=15,
        device=device,
        dtype=dtype,
    )
    cross = CrossCache(
        manifest.network, max_slots=3, max_source_length=40, device=device, dtype=dtype
    )
    kept = sum(table.nbytes for table in (*rows.growing, cross.keys, cross.values))
    places = LIMITS.max_rows * LIMITS.max_target_length
    assert cache_bytes(manifest, LIMITS) == kept + 16 * places
    assert table_bytes(manifest, LIMITS) == 2 * 40 * 32 * 4


@pytest.mark.parametrize("cell", ["self-attention", "ssru"])
def test_float32_on_a_cpu_is_counted_as_it_is_allocated(
    manifest: Manifest, cell: DecoderCell
) -> None:
    network = replace(manifest.network, decoder_cell=cell)
    counted = replace(manifest, network=network)
    transformer = Transformer(network).eval()
    backend = EagerBackend(transformer, tokens=manifest.tokens, limits=LIMITS)
    rows, cross = backend._network._cache, backend._network._cross_cache
    tables = cache_tables(network, compute_type="float32", device="cpu")
    kept = sum(t.nbytes for t in (*rows.growing, *rows.replaced, cross.keys, cross.values))
    places = LIMITS.max_rows * LIMITS.max_target_length
    assert cache_bytes(counted, LIMITS, tables) == kept + 16 * places
    needed = check_footprint(counted, LIMITS, None, tables=tables)
    assert needed > check_footprint(counted, LIMITS, None)
    with pytest.raises(ConfigError, match="there are at most"):
        check_footprint(counted, LIMITS, needed - 1, tables=tables)


def test_what_keeps_the_least_is_counted_as_that(manifest: Manifest) -> None:
    network = manifest.network
    plain = replace(network, position="rope")
    for config, compute_type, device in (
        (network, "int8", "cpu"),
        (network, "bfloat16", "cuda"),
        (network, "float32", "cuda:1"),
        (plain, "float32", "cpu"),
    ):
        assert cache_tables(config, compute_type=compute_type, device=device) == LEAST_TABLES


def test_an_ssru_keeps_as_much_of_a_long_past_as_of_a_short_one(manifest: Manifest) -> None:
    student = replace(manifest, network=replace(manifest.network, decoder_cell="ssru"))
    shape = {"num_layers": student.network.num_decoder_layers, "max_rows": 8, "max_length": 30}
    cpu, half = torch.device("cpu"), torch.bfloat16
    states = SSRU(student.network).state_shapes()
    rows = RowCache(states, **shape, device=cpu, dtype=half)
    cross = CrossCache(student.network, max_slots=3, max_source_length=40, device=cpu, dtype=half)
    assert rows.growing == ()
    kept = sum(table.nbytes for table in (*rows.replaced, cross.keys, cross.values))
    tokens = 16 * LIMITS.max_rows
    assert cache_bytes(student, LIMITS) == kept + tokens * LIMITS.max_target_length
    longer = replace(LIMITS, max_target_length=LIMITS.max_target_length + 1)
    assert cache_bytes(student, longer) == cache_bytes(student, LIMITS) + tokens


def test_what_fits_to_the_byte_fits_and_more_is_refused(manifest: Manifest) -> None:
    needed = check_footprint(manifest, LIMITS, None)
    assert check_footprint(manifest, LIMITS, needed) == needed
    second = manifest.network.output_size * manifest.network.d_model
    listed = check_footprint(manifest, LIMITS, None, with_shortlist=True)
    assert listed == needed + second
    with pytest.raises(
        ConfigError, match=r"limits.max_source_length 64, .* for 8 rows and 3 slots"
    ):
        check_footprint(manifest, LIMITS, needed - 1)
    with pytest.raises(ConfigError, match="for 9 rows"):
        check_footprint(manifest, replace(LIMITS, max_rows=9), needed)


def test_the_rows_that_fit_are_as_many_as_caches_of_whole_sentences(manifest: Manifest) -> None:
    limits = SessionLimits(max_rows=64, max_slots=16, max_source_length=64, max_target_length=66)
    for num_slots in (1, 5, 15):
        part = replace(limits, max_rows=4 * num_slots, max_slots=num_slots)
        needed = cache_bytes(manifest, part)
        assert fitting_rows(manifest, limits, needed, num_tokens=66) == 4 * num_slots
        assert fitting_rows(manifest, limits, needed - 1, num_tokens=66) == 4 * (num_slots - 1)
        assert fitting_rows(manifest, limits, needed, num_tokens=16) >= 4 * num_slots
    assert fitting_rows(manifest, limits, 2**40, num_tokens=66) == 64


def test_what_encoding_takes_grows_with_the_network_and_its_numbers(manifest: Manifest) -> None:
    network = manifest.network
    wide = replace(network, d_model=2 * network.d_model, d_ff=2 * network.d_ff)
    rest = 2 * working_bytes(network) - working_bytes(network, number_bytes=4)
    assert rest > 0
    for number_bytes in (2, 4):
        one = working_bytes(network, number_bytes=number_bytes) - rest
        assert working_bytes(wide, number_bytes=number_bytes) - rest == 2 * one
        assert one >= number_bytes * 16_384 * (network.d_model + network.d_ff)
    thick = replace(network, d_ff=network.d_ff + 1)
    assert working_bytes(thick) - working_bytes(network) >= 2 * 16_384


def test_the_least_on_a_gpu_is_what_its_tables_begin_with_at_full_length() -> None:
    limits = SessionLimits(max_rows=4096, max_slots=1024, max_source_length=9, max_target_length=7)
    least = replace(limits, max_rows=4 * FEWEST_SLOTS, max_slots=FEWEST_SLOTS)
    assert least_limits(limits) == least
    few = replace(limits, max_rows=8, max_slots=3)
    assert least_limits(few) == replace(few, max_rows=6)


def test_sentences_on_a_cpu_have_the_machine_or_the_container() -> None:
    assert memory_limit(torch.device("cpu")) == host_limit()


def test_the_bundled_checkpoints_take_little() -> None:
    limits = SessionLimits(max_rows=128, max_slots=64, max_source_length=100, max_target_length=102)
    for path in sorted(Path("checkpoints").glob("*/config.json")):
        manifest = read_manifest(path.parent, verify=False)
        assert check_footprint(manifest, limits, 64 * 2**20) > 0
