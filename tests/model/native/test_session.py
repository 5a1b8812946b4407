"""Sentences in a crowd and alone, searched by the kernels and by the plain search."""

import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from model.config import ModelConfig, SearchConfig
from model.decode.session import DecodeRequest, DecodingSession, Hypothesis, SessionLimits
from model.native import kernels
from model.native.in_memory import NetworkWeights, pack_transformer
from model.native.network import Int8Network
from support.int8_cases import SHAPE, SHAPES, random_network
from support.int8_cases import packed as packed_weights
from support.plain_kernels import plain_network
from support.random_weights import random_weights
from support.reference_search import reference_search
from support.search_cases import (
    LIMITS,
    TOKENS,
    expected_of,
    random_request,
    run_in_a_crowd,
    small_transformer,
    with_forced,
    with_groups,
    with_phrases,
    with_sampling,
    without_repeats,
)

pytestmark = pytest.mark.skipif(
    kernels.find_problem() is not None, reason=f"no kernels here: {kernels.find_problem()}"
)


def packed(shape: dict[str, object], *, num_threads: int = 1) -> Int8Network:
    return pack_transformer(
        small_transformer(dtype=torch.float32, **shape),
        max_positions=38,
        suppressed_ids=TOKENS.suppressed_ids,
        num_threads=num_threads,
    )


@pytest.mark.parametrize("name", ["post-norm, tied", "ssru", "t5", "mbart"])
def test_a_crowd_never_changes_a_sentence_not_by_one_bit(name: str) -> None:
    network, _ = random_network(SHAPES[name], num_threads=2)
    for request, hypotheses in run_in_a_crowd(network, random.Random(3), 60):
        assert hypotheses == alone(network, request)


@pytest.mark.parametrize("has_suppressed", [False, True], ids=["free", "suppressed"])
@pytest.mark.parametrize("eos_bias", [-1.0, 1.0, 3.0])
@pytest.mark.parametrize("forced_first_id", [None, 7])
@pytest.mark.parametrize("cell", ["self-attention", "ssru"])
def test_the_search_is_the_plain_search_over_the_same_numbers(
    cell: str, eos_bias: float, forced_first_id: int | None, *, has_suppressed: bool
) -> None:
    network, _ = random_network({"decoder_cell": cell}, num_threads=2, eos_bias=eos_bias)
    tokens = replace(TOKENS, forced_first_id=forced_first_id)
    next_log_probs = plain_network(network)
    crowd = run_in_a_crowd(
        network, random.Random(13), 60, tokens=tokens, has_suppressed=has_suppressed
    )
    for request, hypotheses in crowd:
        expected = reference_search(
            next_log_probs,
            tokens,
            list(request.source_ids),
            list(request.prefix_ids),
            request.search,
            suppressed_ids=request.suppressed_ids,
        )
        assert [list(h.token_ids) for h in hypotheses] == [e.tokens for e in expected]
        for hypothesis, reference in zip(hypotheses, expected, strict=True):
            assert hypothesis.score == pytest.approx(reference.score, abs=1e-10)
            assert list(hypothesis.token_log_probs) == reference.log_probs
            assert hypothesis.is_truncated == reference.is_truncated


def test_groups_of_beams_are_the_plain_searchs_to_the_last_bit() -> None:
    network, _ = random_network({}, num_threads=2, eos_bias=1.0)
    next_log_probs = plain_network(network)
    crowd = run_in_a_crowd(network, random.Random(59), 60, has_suppressed=True, vary=with_groups)
    for request, hypotheses in crowd:
        expected = expected_of(next_log_probs, request, TOKENS)
        assert [list(h.token_ids) for h in hypotheses] == [e.tokens for e in expected]
        assert [h.score for h in hypotheses] == [e.score for e in expected]
        assert [list(h.token_log_probs) for h in hypotheses] == [e.log_probs for e in expected]
        assert hypotheses == alone(network, request)
    assert 20 < sum(request.search.num_groups > 1 for request, _ in crowd) < 60


def test_the_number_of_threads_never_changes_a_bit() -> None:
    rng = random.Random(5)
    requests = [random_request(rng) for _ in range(25)]
    networks = [packed({}, num_threads=count) for count in (1, 2, 3)]
    one, two, three = [[alone(network, request) for request in requests] for network in networks]
    assert one == two == three


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system counts no times")
def test_threads_that_sleep_are_woken_by_a_step() -> None:
    """One module starts them and another wakes them, each perhaps with a C++ library of its own."""
    before = {task.name for task in Path("/proc/self/task").iterdir()}
    network = packed({}, num_threads=2)
    [worker] = [task for task in Path("/proc/self/task").iterdir() if task.name not in before]
    session = DecodingSession(network, tokens=TOKENS, limits=LIMITS)
    wait_until(lambda: state_of(worker) == "S", "it does not sleep")
    asleep = (worker / "schedstat").read_text()
    session.admit([random_request(random.Random(3)) for _ in range(4)])
    session.step()
    wait_until(lambda: (worker / "schedstat").read_text() != asleep, "nobody woke it")


def state_of(task: Path) -> str:
    """The letter that follows a thread's name."""
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


def wait_until(is_so: Callable[[], bool], problem: str) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline, problem
        time.sleep(0.01)


def test_limits_that_memory_is_not_enough_for_are_an_error_of_memory() -> None:
    """Found by the level, perhaps with a C++ library of its own: 2 PB of addresses are too many."""
    limits = replace(LIMITS, max_rows=2**18, max_target_length=2**25)
    with pytest.raises(MemoryError):
        DecodingSession(packed({}), tokens=TOKENS, limits=limits)


@pytest.mark.parametrize("num_threads", [1, 2, 3])
@pytest.mark.parametrize("name", ["post-norm, tied", "ssru", "t5", "mbart"])
def test_rows_that_a_thread_takes_through_all_layers_are_those_that_all_threads_share(
    name: str, num_threads: int
) -> None:
    """Many sentences at once are shares of rows, and batches of the encoder; one is neither."""
    network, _ = random_network(SHAPES[name], num_threads=num_threads)
    rng = random.Random(29)
    limits = replace(LIMITS, max_rows=400, max_slots=80)
    requests = [random_request(rng) for _ in range(80)]
    session = DecodingSession(network, tokens=TOKENS, limits=limits)
    names = session.admit(requests)
    found = {}
    while len(found) < len(requests):
        found |= {finished.slot_id: finished.hypotheses for finished in session.step()}
    for slot, request in zip(names, requests, strict=True):
        assert found[slot] == alone(network, request)


def alone(network: Int8Network, request: DecodeRequest) -> tuple[Hypothesis, ...]:
    session = DecodingSession(network, tokens=TOKENS, limits=LIMITS)
    session.admit([request])
    while True:
        for finished in session.step():
            return finished.hypotheses


def test_the_likeliest_tokens_are_few_of_many_and_the_suppressed_are_not_among_them() -> None:
    transformer = small_transformer(dtype=torch.float32, vocab_size=700)
    network = pack_transformer(
        transformer, max_positions=8, suppressed_ids=(5, 6, 64, 699), num_threads=2
    )
    session = kernels.load().session(
        network.packed,
        network.team,
        max_rows=3,
        max_slots=1,
        max_source_length=8,
        max_target_length=8,
        eos_id=TOKENS.eos_id,
    )
    session.encode(
        np.array([3, 4, 1], dtype=np.int32),
        np.array([3], dtype=np.int32),
        np.array([0], dtype=np.int32),
    )

    def best_of(count: int) -> tuple[np.ndarray, np.ndarray]:
        log_probs = np.empty((3, count), dtype=np.float32)
        best = np.empty((3, count), dtype=np.int64)
        session.feed(
            np.array([0, 9, 11]),
            np.arange(3),
            np.zeros(3, dtype=np.int64),
            np.zeros(3, dtype=np.int64),
            log_probs,
            best,
            None,
        )
        return log_probs, best

    all_log_probs, all_best = best_of(696)
    assert not np.isin(all_best, [5, 6, 64, 699]).any()
    few_log_probs, few_best = best_of(8)
    assert (few_best == all_best[:, :8]).all()
    assert (few_log_probs == all_log_probs[:, :8]).all()
    asked = np.empty_like(all_log_probs)
    session.log_probs_of(all_best, asked)
    assert (asked == all_log_probs).all(), "a token asked for has the bits that it is ranked by"


def test_alignments_are_those_of_the_float_network() -> None:
    transformer = small_transformer(dtype=torch.float32)
    search = SearchConfig(beam_size=3, max_length=10, with_alignment=True)
    rng = random.Random(11)
    num_same = num_tokens = 0
    for _ in range(20):
        request = random_request(rng, search)
        exact = DecodingSession(transformer, tokens=TOKENS, limits=LIMITS)
        exact.admit([request])
        found: tuple[Hypothesis, ...] = ()
        while not exact.is_idle:
            for finished in exact.step():
                found = finished.hypotheses
        [mine] = alone(packed({}), request)
        assert mine.alignment is not None
        assert len(mine.alignment) == len(mine.token_ids)
        if mine.token_ids == found[0].token_ids and found[0].alignment is not None:
            num_tokens += len(mine.token_ids)
            num_same += sum(a == b for a, b in zip(mine.alignment, found[0].alignment, strict=True))
    assert num_tokens > 50
    assert num_same / num_tokens > 0.9


def test_numbers_that_are_not_finite_give_no_hypothesis_and_harm_nobody_else() -> None:
    transformer = small_transformer(dtype=torch.float32, share_embeddings=False)
    network = packed({"share_embeddings": False})
    session = DecodingSession(network, tokens=TOKENS, limits=LIMITS)
    with torch.no_grad():
        norm = transformer.encoder.layers[0].self_attention_norm
        norm.weight.fill_(float("nan"))
    broken = pack_transformer(transformer, max_positions=38)
    search = SearchConfig(beam_size=2, max_length=4)
    request = DecodeRequest(source_ids=(4, 5, 1), prefix_ids=(0,), search=search)
    session.admit([request])
    assert alone(broken, request) == ()
    while not session.is_idle:
        for finished in session.step():
            assert finished.hypotheses == alone(network, request)


@pytest.mark.parametrize("cell", ["self-attention", "ssru"])
def test_states_that_are_not_finite_are_not_inherited_by_the_next_sentence(cell: str) -> None:
    config = ModelConfig(**(SHAPE | {"decoder_cell": cell, "share_embeddings": False}))
    weights = random_weights(config)
    weights["source_embedding.weight"][7] = torch.nan
    network = packed_weights(config, NetworkWeights(weights))
    session = DecodingSession(network, tokens=TOKENS, limits=LIMITS)
    bad, healthy = (
        DecodeRequest(source_ids=source, prefix_ids=(0,), search=SearchConfig(max_length=8))
        for source in ((7, 1), (4, 5, 1))
    )
    expected = alone(network, healthy)
    assert expected
    for request in (bad, healthy):
        session.admit([request])
        while not session.is_idle:
            for finished in session.step():
                assert finished.hypotheses == (() if request is bad else expected)


def test_long_pasts_give_their_memory_back_and_the_next_sentence_is_right() -> None:
    limits = SessionLimits(max_rows=4, max_slots=2, max_source_length=20, max_target_length=260)
    transformer = small_transformer(dtype=torch.float32, eos_bias=-50.0)
    network = pack_transformer(transformer, max_positions=260)
    request = DecodeRequest(
        source_ids=(5, 6, 7, 1),
        prefix_ids=(0,),
        search=SearchConfig(beam_size=2, max_length=250),
    )
    session = DecodingSession(network, tokens=TOKENS, limits=limits)
    results = []
    for _ in range(3):
        session.admit([request, request])
        while not session.is_idle:
            results += [finished.hypotheses for finished in session.step()]
    assert len(results[0][0].token_ids) == 249
    assert all(result == results[0] for result in results)


def test_a_past_that_is_given_back_is_its_own_and_nobody_elses() -> None:
    """Of a length that ends with the row: what is given back behind it would be the next row's."""
    limits = SessionLimits(max_rows=4, max_slots=2, max_source_length=20, max_target_length=256)
    transformer = small_transformer(dtype=torch.float32, eos_bias=-50.0, num_decoder_layers=1)
    network = pack_transformer(transformer, max_positions=256)
    first, second = (
        DecodeRequest(
            source_ids=source,
            prefix_ids=(0,),
            search=SearchConfig(beam_size=2, num_hypotheses=2, max_length=255),
        )
        for source in ((5, 6, 7, 1), (9, 4, 1))
    )

    def outcome(*requests: DecodeRequest, gap: int) -> list[tuple[Hypothesis, ...]]:
        """Each joins so many steps after the one before it."""
        session = DecodingSession(network, tokens=TOKENS, limits=limits)
        found = []
        for request in requests:
            session.admit([request])
            found += [finished for _ in range(gap) for finished in session.step()]
        while not session.is_idle:
            found += session.step()
        return [finished.hypotheses for finished in found]

    [alone] = outcome(second, gap=0)
    for gap in (1, 8, 60):
        assert outcome(first, second, gap=gap)[1] == alone


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("num_heads", [1, 8])
@pytest.mark.parametrize("longer", ["source", "target"])
def test_limits_may_be_far_apart(longer: str, num_heads: int, num_threads: int) -> None:
    """A thread's room for scores is that of the longer side, of four rows or all heads."""
    shape = {"num_encoder_layers": 0, "num_decoder_layers": 1, "num_heads": num_heads}
    network = pack_transformer(
        small_transformer(dtype=torch.float32, eos_bias=-50.0, **shape),
        max_positions=2000,
        num_threads=num_threads,
    )
    is_source = longer == "source"
    request = DecodeRequest(
        source_ids=(*[4 + i % 19 for i in range(1999 if is_source else 1)], 1),
        prefix_ids=(0,),
        search=SearchConfig(beam_size=4, num_hypotheses=4, max_length=7 if is_source else 120),
    )
    tight = SessionLimits(
        max_rows=8,
        max_slots=2,
        max_source_length=2000 if is_source else 2,
        max_target_length=8 if is_source else 121,
    )
    wide = replace(tight, max_source_length=2000, max_target_length=2000)
    found = []
    for limits in (tight, wide):
        session = DecodingSession(network, tokens=TOKENS, limits=limits)
        session.admit([request, request])
        while not session.is_idle:
            found += [finished.hypotheses for finished in session.step()]
    assert len(found) == 4
    assert all(hypotheses == found[0] for hypotheses in found)


def test_a_decoder_without_layers_looks_at_nothing() -> None:
    request = random_request(random.Random(2), SearchConfig(max_length=8, with_alignment=True))
    (best, *_) = alone(packed({"num_decoder_layers": 0}), request)
    assert best.alignment == (0,) * len(best.token_ids)


def test_a_loop_of_more_than_a_million_tasks_is_done_whole() -> None:
    shape = {"d_model": 4, "num_heads": 1024, "d_k": 1, "d_v": 1}
    shape |= {"num_encoder_layers": 1, "num_decoder_layers": 1}
    search = SearchConfig(beam_size=1, max_length=2)
    requests = [
        DecodeRequest(source_ids=(3 + i % 20,), prefix_ids=(0,), search=search) for i in range(1030)
    ]
    limits = replace(LIMITS, max_rows=1030, max_slots=1030)
    found = []
    for num_threads in (1, 2):
        session = DecodingSession(
            packed(shape, num_threads=num_threads), tokens=TOKENS, limits=limits
        )
        session.admit(requests)  # 1030 sentences times 1024 heads: more than 2 ** 20
        found.append([one.hypotheses for _ in range(2) for one in session.step()])
    assert found[0] == found[1]
    assert len(found[0]) == 1030


@pytest.mark.parametrize("cell", ["self-attention", "ssru"])
@pytest.mark.parametrize("forced_first_id", [None, 7])
@pytest.mark.parametrize("vary", [with_forced, with_sampling, with_phrases, without_repeats])
def test_what_is_forced_drawn_and_contained_is_that_of_the_plain_search_over_the_same_numbers(
    cell: str,
    forced_first_id: int | None,
    vary: Callable[[random.Random, DecodeRequest], DecodeRequest],
) -> None:
    network, _ = random_network({"decoder_cell": cell}, num_threads=2)
    tokens = replace(TOKENS, forced_first_id=forced_first_id)
    next_log_probs = plain_network(network)
    for request, hypotheses in run_in_a_crowd(
        network, random.Random(19), 16, tokens=tokens, vary=vary
    ):
        expected = expected_of(next_log_probs, request, tokens)
        assert [list(h.token_ids) for h in hypotheses] == [e.tokens for e in expected]
        for hypothesis, reference in zip(hypotheses, expected, strict=True):
            assert hypothesis.score == pytest.approx(reference.score, abs=1e-10)
            assert list(hypothesis.token_log_probs) == reference.log_probs
            assert hypothesis.is_truncated == reference.is_truncated
            assert hypothesis.num_missed == reference.num_missed
