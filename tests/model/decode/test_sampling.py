"""Drawn hypotheses against each drawn alone, in every backend; and what the noise is."""

import math
import random
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
import torch

from model.config import Sampling, SearchConfig
from model.decode.backends.base import Backend
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.recording import Rerun
from model.decode.backends.eager.backend import EagerBackend
from model.decode.backends.plain.backend import PlainBackend
from model.decode.beam_search import RowContinuations
from model.decode.sampling import gumbel_noise, mixed, row_sampling, sample
from model.decode.session import DecodeRequest, DecodingSession
from model.errors import ConfigError
from support import reference_search
from support.search_cases import (
    LIMITS,
    TOKENS,
    assert_equals_reference,
    run_in_a_crowd,
    small_transformer,
    with_forced,
    with_sampling,
)
from support.traced_steps import TracedSteps

CPU = torch.device("cpu")
BACKENDS: dict[str, Callable[..., Backend]] = {
    "plain": PlainBackend,
    "eager": EagerBackend,
    "grid": partial(GridBackend, recorder=Rerun()),
}
backends = pytest.mark.parametrize("opener", BACKENDS.values(), ids=BACKENDS.keys())


@backends
def test_a_crowd_never_changes_what_is_drawn(opener: Callable[..., Backend]) -> None:
    transformer = small_transformer(eos_bias=1.0)
    crowd = run_in_a_crowd(
        transformer, random.Random(23), 16, opener=opener, has_suppressed=True, vary=with_sampling
    )
    for request, hypotheses in crowd:
        assert_equals_reference(transformer, request, hypotheses)
    assert 5 < sum(request.search.sampling is not None for request, _ in crowd) < 16


@backends
def test_what_is_forced_is_the_beginning_of_every_hypothesis(
    opener: Callable[..., Backend],
) -> None:
    transformer = small_transformer(eos_bias=1.0)
    crowd = run_in_a_crowd(transformer, random.Random(5), 14, opener=opener, vary=with_forced)
    for request, hypotheses in crowd:
        assert_equals_reference(transformer, request, hypotheses)
        forced = request.forced_ids[: request.search.max_length - 1]
        assert all(one.token_ids[: len(forced)] == forced for one in hypotheses)
    assert sum(bool(request.forced_ids) for request, _ in crowd) > 3


def test_recorded_steps_draw_for_sentences_that_come_later() -> None:
    transformer = small_transformer(num_encoder_layers=1, num_decoder_layers=1)
    recorder = TracedSteps()
    session = DecodingSession(
        transformer, tokens=TOKENS, limits=LIMITS, opener=partial(GridBackend, recorder=recorder)
    )
    for seed in range(3):
        search = SearchConfig(
            beam_size=2,
            num_hypotheses=2,
            max_length=4,
            sampling=Sampling(temperature=1.0 + seed, seed=seed),
        )
        request = DecodeRequest(source_ids=(4, 9, 1), prefix_ids=(0,), search=search)
        session.admit([request])
        while not session.is_idle:
            for finished in session.step():
                assert_equals_reference(transformer, request, finished.hypotheses)
    assert recorder.num_recorded == 1
    assert recorder.num_replayed >= 8


def test_noise_is_the_same_function_as_the_reference_and_looks_drawn() -> None:
    seeds = torch.tensor([0, 1, 2**63 - 1, 12345])
    beams, steps, tokens = torch.arange(4), torch.tensor([0, 5, 7, 200]), torch.arange(60_000)
    found = gumbel_noise(mixed(mixed(mixed(seeds, beams), steps).unsqueeze(1), tokens))
    for row in range(4):
        for token in (0, 1, 59_999):
            numbers = (seeds[row], beams[row], steps[row], tokens[token])
            expected = reference_search.gumbel_noise(*map(int, numbers))
            assert found[row, token].item() == pytest.approx(expected, abs=1e-12)
    assert found.mean().item() == pytest.approx(0.5772, abs=0.02)
    assert found.var().item() == pytest.approx(math.pi**2 / 6, abs=0.05)


def test_draws_follow_the_probabilities_at_their_temperature() -> None:
    log_probs = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().double()
    rows = 8_000
    continuations = RowContinuations(
        log_probs=log_probs.expand(rows, 4), tokens=torch.arange(4).expand(rows, 4)
    )
    search = SearchConfig(beam_size=1, sampling=Sampling(temperature=2.0, top_k=3, seed=7))
    sampling = row_sampling([(search, row) for row in range(rows)], CPU)
    assert sampling is not None
    drawn = sample(continuations, sampling, torch.zeros(rows, dtype=torch.int64))
    counts = Counter(drawn.tokens[:, 0].tolist())
    weights = [math.sqrt(value) for value in (0.5, 0.3, 0.15)]
    assert counts[3] == 0
    for token, weight in enumerate(weights):
        assert counts[token] / rows == pytest.approx(weight / sum(weights), abs=0.02)
    assert torch.isneginf(drawn.log_probs[:, 1:]).all()
    assert torch.equal(drawn.log_probs[:, 0], log_probs[drawn.tokens[:, 0]])


def test_the_fewest_tokens_that_sum_up_to_top_p_are_drawn_of() -> None:
    log_probs = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().double().expand(500, 4)
    continuations = RowContinuations(log_probs=log_probs, tokens=torch.arange(4).expand(500, 4))
    for top_p, expected in ((0.4, {0}), (0.5001, {0, 1}), (0.9, {0, 1, 2}), (1.0, {0, 1, 2, 3})):
        search = SearchConfig(sampling=Sampling(top_p=top_p))
        sampling = row_sampling([(search, row) for row in range(500)], CPU)
        assert sampling is not None
        drawn = sample(continuations, sampling, torch.zeros(500, dtype=torch.int64))
        assert set(drawn.tokens[:, 0].tolist()) == expected


def test_without_sampling_there_is_nothing_to_draw_by() -> None:
    assert row_sampling([(SearchConfig(), 0), (SearchConfig(), 1)], CPU) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("temperature", 0.0), ("temperature", 10.5), ("temperature", math.nan), ("top_k", 0),
     ("top_k", 129), ("top_p", 0.0), ("top_p", 1.1), ("seed", -1), ("seed", 2**63)],
)  # fmt: skip
def test_what_nothing_can_be_drawn_by_is_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"{name} is {value}"):
        Sampling(**{name: value})  # type: ignore[arg-type]
