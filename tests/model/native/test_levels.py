"""Every instruction set that this machine has gives the same bits as every other one.

What is compared is what the kernels give back: log probabilities with all their digits, alignments,
and whole translations. What they should be is the other tests' matter.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from model.config import Sampling, SearchConfig
from model.decode.session import DecodingSession
from model.errors import ConfigError, UnsupportedVariantError
from model.native import kernels
from model.native.network import Int8Network
from model.request import DecodeRequest, FinishedSentence, SessionLimits
from model.shortlist import Shortlist
from support.int8_cases import SHAPES, random_network
from support.search_cases import TOKENS

LEVELS = [] if kernels.find_problem() else kernels.usable()
needs_two = pytest.mark.skipif(len(LEVELS) < 2, reason=f"kernels here: {LEVELS or 'none'}")
_LIMITS = SessionLimits(max_rows=24, max_slots=8, max_source_length=37, max_target_length=38)
"""The network's positions: every number of rows up to four blocks of six."""


def sources(vocab_size: int, *lengths: int) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(7)
    return [(*map(int, rng.integers(3, vocab_size, length)), TOKENS.eos_id) for length in lengths]


def fed(network: Int8Network, lengths: Sequence[int]) -> list[npt.NDArray[np.generic]]:
    """What six steps of as many rows as there are sentences give, bit by bit."""
    num = len(lengths)
    session = kernels.load(network.instruction_set).session(
        network.packed,
        network.team,
        max_rows=num,
        max_slots=num,
        max_source_length=max(lengths),
        max_target_length=38,
        eos_id=TOKENS.eos_id,
    )
    rng = np.random.default_rng(3)
    ids = rng.integers(3, network.config.vocab_size, sum(lengths)).astype(np.int32)
    slots = np.arange(num, dtype=np.int32)
    session.encode(ids, np.array(lengths, np.int32), slots)
    rows = np.arange(num)
    found: list[npt.NDArray[np.generic]] = []
    for position in range(6):
        log_probs = np.empty((num, network.config.output_size), np.float32)
        best = np.empty(log_probs.shape, np.int64)
        attended = np.empty(num, np.int64)
        tokens = rng.integers(3, network.config.output_size, num)
        at = np.full(num, position)
        session.feed(tokens, rows, rows, at, log_probs, best, attended)
        found += [log_probs.view(np.int32), best, attended]
    return found


def translated(
    network: Int8Network, requests: Sequence[DecodeRequest], shortlist: Shortlist | None = None
) -> list[FinishedSentence]:
    """All that a session says of these sentences, in the order in which they end."""
    session = DecodingSession(network, tokens=TOKENS, limits=_LIMITS, shortlist=shortlist)
    session.admit(requests)
    finished: list[FinishedSentence] = []
    while len(finished) < len(requests):
        finished += session.step()
    return finished


def assert_levels_agree(network: Int8Network, run: Callable[[Int8Network], object]) -> None:
    first, *others = (run(replace(network, instruction_set=level)) for level in LEVELS)
    for level, other in zip(LEVELS[1:], others, strict=True):
        np.testing.assert_equal(other, first, err_msg=f"{level} and {LEVELS[0]}")


@needs_two
@pytest.mark.parametrize("shape", SHAPES)
def test_log_probabilities_and_alignments_of_every_kind_of_network(shape: str) -> None:
    network, _ = random_network(SHAPES[shape])
    assert_levels_agree(network, lambda one: fed(one, [1, 16, 37, 5, 17, 2, 33]))


@needs_two
@pytest.mark.parametrize("num_rows", [1, 2, 3, 4, 5, 6, 8, 11, 13, 50])
def test_any_number_of_rows(num_rows: int) -> None:
    network, _ = random_network({"d_model": 100, "d_ff": 130, "vocab_size": 150})
    assert_levels_agree(network, lambda one: fed(one, [3] * num_rows))


@needs_two
@pytest.mark.parametrize("extreme", [0.0, 1e-44, 1e-38, 1e30, float("inf"), float("nan")])
def test_numbers_at_the_ends_of_their_range(extreme: float) -> None:
    """What is added to embeddings goes into the stream as it is."""
    module = kernels.load()
    table = np.zeros((7, 16), np.float32)
    table[:, ::3] = extreme
    table[2] = -extreme
    one = module.matrix(
        np.arange(-128, 128, dtype=np.int16).astype(np.int8).reshape(16, 16),
        np.ones(16, np.float32),
        None,
    )
    plain = module.network(
        d_model=16,
        encoder_d_ff=16,
        decoder_d_ff=16,
        max_positions=7,
        heads=(1, 16, 16, 1.0),
        is_pre_norm=False,
        activation="relu",
        is_gated=False,
        decoder_cell="self-attention",
        embedding_factor=0.0,
        output_factor=1.0,
        source_table=one,
        target_table=one,
        output=one,
        source_positions=table,
        target_positions=table,
        encoder_bias=None,
        decoder_bias=None,
        suppressed=[],
    )

    def logits(level: str) -> list[npt.NDArray[np.generic]]:
        session = kernels.load(level).session(
            plain, module.team(1), max_rows=7, max_slots=1, max_source_length=1,
            max_target_length=7, eos_id=0,
        )  # fmt: skip
        session.encode(np.zeros(1, np.int32), np.ones(1, np.int32), np.zeros(1, np.int32))
        found: list[npt.NDArray[np.generic]] = []
        for position in range(7):
            log_probs, best = np.empty((1, 16), np.float32), np.empty((1, 16), np.int64)
            zero = np.zeros(1, np.int64)
            session.feed(zero, zero, zero, zero + position, log_probs, best, None)
            found += [np.where(np.isnan(log_probs), 0, log_probs.view(np.int32)), best]
        return found

    first, *others = map(logits, LEVELS)
    for other in others:
        np.testing.assert_equal(other, first)


@needs_two
@pytest.mark.parametrize("shape", ["post-norm, tied", "ssru", "t5"])
def test_translations_by_beams_and_by_drawing(shape: str) -> None:
    network, _ = random_network(SHAPES[shape] | {"vocab_size": 71}, eos_bias=0.3)
    drawn = Sampling(temperature=1.3, top_k=20, top_p=0.9, seed=5)
    searches = [
        SearchConfig(beam_size=4, max_length=20, with_alignment=True),
        SearchConfig(beam_size=1, max_length=20),
        SearchConfig(beam_size=2, max_length=20, sampling=drawn),
        SearchConfig(beam_size=3, max_length=9),
    ]
    requests = [
        DecodeRequest(source_ids=source, prefix_ids=(TOKENS.eos_id,), search=search)
        for source, search in zip(sources(71, 3, 20, 36, 7), searches, strict=True)
    ]
    assert_levels_agree(network, lambda one: translated(one, requests))


@needs_two
@pytest.mark.parametrize("beam_size", [1, 2, 3, 4, 6])
def test_translations_from_shortlists(beam_size: int) -> None:
    network, _ = random_network({"vocab_size": 400, "d_model": 72}, eos_bias=0.3)
    rng = np.random.default_rng(1)
    offsets = np.arange(401, dtype=np.int32) * 20
    shortlist = Shortlist(
        always=np.arange(30, dtype=np.int32),
        offsets=offsets,
        ids=rng.integers(0, 400, 8000).astype(np.int32),
        with_source=True,
    )
    requests = [
        DecodeRequest(
            source_ids=source,
            prefix_ids=(TOKENS.eos_id,),
            search=SearchConfig(beam_size=beam_size, max_length=12),
        )
        for source in sources(400, 2, 9, 30)
    ]
    assert_levels_agree(network, lambda one: translated(one, requests, shortlist))


def test_the_one_that_is_asked_for_is_taken_or_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacking = {"fast": [], "wide": ["tiles"], "slow": []}
    monkeypatch.setattr(kernels, "missing_features", lambda: lacking)
    monkeypatch.setattr(kernels, "_is_built", lambda name: name == "slow")
    assert kernels.chosen({}) == "slow"
    assert kernels.chosen({"DRAGOMAN_ISA": "slow"}) == "slow"
    for name, problem in {
        "wide": "DRAGOMAN_ISA is 'wide'; the processor has no tiles",
        "fast": "DRAGOMAN_ISA is 'fast'; model.native._kernels_fast was not built",
        "fats": "DRAGOMAN_ISA is 'fats'; kernels here are for: fast, wide, slow",
    }.items():
        with pytest.raises(ConfigError) as raised:
            kernels.chosen({"DRAGOMAN_ISA": name})
        assert str(raised.value) == problem


@pytest.mark.skipif(not LEVELS, reason="no kernels here")
def test_kernels_for_another_processor_are_never_imported() -> None:
    with pytest.raises(UnsupportedVariantError, match="no kernels for avx1024"):
        kernels.load("avx1024")


@pytest.mark.skipif(not LEVELS, reason="no kernels here")
@pytest.mark.parametrize("level", LEVELS)
def test_the_environment_chooses(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_ISA", level)
    network, _ = random_network({})
    assert network.instruction_set == level
    assert kernels.load().instruction_set == level
