"""The same session on a CUDA device: `make test-gpu`."""

import random
from functools import partial

import pytest
import torch

from model.config import SearchConfig
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.recording import CudaGraphs, Rerun
from model.decode.session import DecodingSession
from support.reference_search import reference_search
from support.search_cases import (
    FAMILIES,
    LIMITS,
    TOKENS,
    assert_equals_reference,
    random_request,
    run_in_a_crowd,
    small_transformer,
    with_sampling,
)

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", ["default", *FAMILIES])
def test_in_float64_the_device_gives_what_the_plain_search_gives(name: str) -> None:
    shape = FAMILIES.get(name, {})
    transformer = small_transformer(**shape).cuda()
    oracle = small_transformer(**shape)
    for request, hypotheses in run_in_a_crowd(transformer, random.Random(13), 60):
        expected = reference_search(
            oracle, TOKENS, list(request.source_ids), list(request.prefix_ids), request.search
        )
        assert [list(h.token_ids) for h in hypotheses] == [e.tokens for e in expected]
        assert [h.score for h in hypotheses] == pytest.approx([e.score for e in expected], abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["default", *FAMILIES])
def test_half_precisions_finish_with_finite_scores(name: str, dtype: torch.dtype) -> None:
    transformer = small_transformer(dtype=dtype, **FAMILIES.get(name, {})).cuda()
    for _, hypotheses in run_in_a_crowd(transformer, random.Random(13), 40):
        assert all(torch.isfinite(torch.tensor(h.token_log_probs)).all() for h in hypotheses)


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("name", ["default", "t5", "student"])
def test_a_step_in_the_loop_never_waits_for_the_device(name: str) -> None:
    """Admission and launching run with every synchronising call of torch made an error."""
    transformer = small_transformer(dtype=torch.float32, **FAMILIES.get(name, {})).cuda()
    session = DecodingSession(transformer, tokens=TOKENS, limits=LIMITS)
    search = SearchConfig(beam_size=4, max_length=16)
    rng = random.Random(3)
    for _ in range(2):  # the first round warms up and records
        session.admit([random_request(rng, search) for _ in range(2)])
        while not session.is_idle:
            session.step()
    torch.cuda.set_sync_debug_mode("error")
    try:
        session.admit([random_request(rng, search) for _ in range(2)])
        while not session.is_idle:
            session.step()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_graphs_are_replayed_and_give_what_the_steps_give() -> None:
    transformer = small_transformer().cuda()
    requests = [random_request(random.Random(seed)) for seed in range(40)]
    found = []
    for recorder in (CudaGraphs(), Rerun()):
        session = DecodingSession(
            transformer,
            tokens=TOKENS,
            limits=LIMITS,
            opener=partial(GridBackend, recorder=recorder),
        )
        results = []
        for request in requests:
            session.admit([request])
            while not session.is_idle:
                results += [sentence.hypotheses for sentence in session.step()]
        found.append(results)
    assert found[0] == found[1]


def test_a_recorder_that_has_lost_all_its_recordings_records_again() -> None:
    recorder, values = CudaGraphs(), torch.arange(4.0, device="cuda")
    for number in range(3):
        offset = torch.full((4,), float(number), device="cuda")
        recorded = recorder.record(lambda offset=offset: values + offset)
        assert recorded().tolist() == [number, number + 1, number + 2, number + 3]
        del recorded


def test_in_float64_the_device_draws_and_forces_what_the_plain_search_does() -> None:
    transformer, oracle = small_transformer().cuda(), small_transformer()
    for request, hypotheses in run_in_a_crowd(
        transformer, random.Random(13), 60, vary=with_sampling
    ):
        assert_equals_reference(oracle, request, hypotheses)
