"""Products in tiles of AMX: exact for every shape, and the bits of all other instruction sets.

Where the processor has no tiles they are emulated (tile_emulator.cpp); the kernels are those that
are shipped, as they were compiled.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from model.config import SearchConfig
from model.decode.session import DecodingSession
from model.native import kernels
from model.request import DecodeRequest, FinishedSentence, SessionLimits
from support import tile_emulation
from support.exact_products import assert_products_are_exact, factors
from support.int8_cases import SHAPES, random_network
from support.search_cases import TOKENS
from support.token_chains import likeliest, open_session, product_network

_PROBLEM = tile_emulation.find_problem()
pytestmark = pytest.mark.skipif(_PROBLEM is not None, reason=f"no tiles here: {_PROBLEM}")


@pytest.fixture(scope="module", autouse=True)
def emulator(tmp_path_factory: pytest.TempPathFactory) -> None:
    if kernels.missing_features()[tile_emulation.LEVEL]:
        tile_emulation.load_emulator(tmp_path_factory.mktemp("tiles"))


@pytest.fixture(autouse=True)
def level(monkeypatch: pytest.MonkeyPatch, emulator: None) -> None:
    tile_emulation.choose_level(monkeypatch)


def test_no_row_is_lost_around_any_number_of_tiles() -> None:
    """A tile has 16 rows, a product 32, a chunk 48."""
    counts = [*range(1, 100), 143, 144, 145, 146]
    assert_products_are_exact(*factors(8, 70, seed=1), counts, num_threads=2)


@pytest.mark.parametrize("width", [*range(1, 10), 60, 61, 63, 64, 65, 68, 127, 128, 129, 132, 257])
def test_no_input_is_lost_around_any_number_of_tiles(width: int) -> None:
    """A tile has 64 inputs; those that are left have one of their own shape."""
    assert_products_are_exact(*factors(width, 40, seed=width), [1, 3, 16, 17, 33], num_threads=2)


@pytest.mark.parametrize("num_outputs", [1, 15, 16, 17, 31, 33, 63, 64, 65, 128, 130])
def test_no_output_is_lost_around_any_number_of_tiles(num_outputs: int) -> None:
    matrix = factors(65, num_outputs, seed=num_outputs)
    assert_products_are_exact(*matrix, [2, 5, 16, 20], num_threads=2)


@pytest.mark.parametrize("shape", ["post-norm, tied", "odd widths, no biases", "ssru", "t5"])
def test_translations_are_those_of_other_instruction_sets(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def translated() -> list[FinishedSentence]:
        network, _ = random_network(SHAPES[shape] | {"vocab_size": 71}, eos_bias=0.3)
        limits = SessionLimits(max_rows=24, max_slots=8, max_source_length=37, max_target_length=38)
        session = DecodingSession(network, tokens=TOKENS, limits=limits)
        rng = np.random.default_rng(7)
        requests = [
            DecodeRequest(
                source_ids=(*map(int, rng.integers(3, 71, length)), TOKENS.eos_id),
                prefix_ids=(TOKENS.eos_id,),
                search=SearchConfig(beam_size=beam_size, max_length=20, with_alignment=True),
            )
            for length, beam_size in [(3, 4), (20, 1), (36, 6), (7, 3)]
        ]
        session.admit(requests)
        finished: list[FinishedSentence] = []
        while len(finished) < 4:
            finished += session.step()
        return finished

    in_tiles = translated()
    monkeypatch.setenv(kernels.VARIABLE, "avx2")
    np.testing.assert_equal(in_tiles, translated())


def test_what_the_processor_lacks_is_named() -> None:
    """As the system lists it, asked by a process that has no emulator."""
    code = "from model.native import kernels; print(*kernels.missing_features()['avx512-amx'])"
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    missing = set(ended.stdout.split())
    has_tiles = "amx_int8" in Path("/proc/cpuinfo").read_text().split()
    assert ("amx_int8" not in missing) == has_tiles
    assert has_tiles or "amx_permission" in missing


def test_weights_without_a_bit_set_and_with_all_set_meet_both_ends_of_activations() -> None:
    """The largest sums there are, of either sign."""
    ends: npt.NDArray[np.int8] = np.array([-127, 127], dtype=np.int8)
    rows = ends[:, None].repeat(256, axis=1)
    matrix = np.stack([np.full(256, end, np.int8) for end in (-128, 127)])
    network = product_network(rows, matrix, unit=2.0**-20)
    session = open_session(network, num_threads=1, max_rows=20)
    found, best = likeliest(session, [0, 1] * 10, 2)
    logits = rows.astype(np.float64) @ matrix.T.astype(np.float64) * 2.0**-20
    wanted = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    for row in range(20):
        assert np.abs(found[row] - wanted[row % 2][best[row]]).max() < 1e-5
