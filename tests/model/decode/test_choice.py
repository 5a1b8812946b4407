"""Searches by groups of beams against a plain search by groups, in every backend."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from msgspec import structs

from model.config import Sampling, SearchConfig
from model.decode.backends.base import Backend
from model.decode.backends.cuda import tables as tables_module
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.recording import Rerun
from model.decode.backends.eager.backend import EagerBackend
from model.decode.backends.plain.backend import PlainBackend
from model.decode.choice import diversity_of
from model.decode.session import DecodeRequest, DecodingSession, Hypothesis
from model.errors import ConfigError, InputError
from model.nn.transformer import Transformer
from support.search_cases import (
    CROWD,
    LIMITS,
    TOKENS,
    assert_equals_reference,
    random_request,
    run_in_a_crowd,
    small_transformer,
    with_groups,
    with_phrases,
    with_sampling,
)
from support.traced_steps import TracedSteps

BACKENDS: dict[str, Callable[..., Backend]] = {
    "plain": PlainBackend,
    "eager": EagerBackend,
    "grid": partial(GridBackend, recorder=Rerun()),
}
backends = pytest.mark.parametrize("opener", BACKENDS.values(), ids=BACKENDS.keys())


def found_by(
    transformer: Transformer, request: DecodeRequest, opener: Callable[..., Backend]
) -> tuple[Hypothesis, ...]:
    session = DecodingSession(transformer, tokens=TOKENS, limits=LIMITS, opener=opener)
    session.admit([request])
    while not (finished := session.step()):
        pass
    return finished[0].hypotheses


@backends
@pytest.mark.parametrize("eos_bias", [-1.0, 1.0, 3.0])
def test_groups_are_the_plain_searchs_whoever_is_beside_them(
    opener: Callable[..., Backend], eos_bias: float
) -> None:
    transformer = small_transformer(eos_bias=eos_bias)
    crowd = run_in_a_crowd(
        transformer,
        random.Random(43),
        CROWD,
        opener=opener,
        vary=with_groups,
        has_suppressed=True,
    )
    for request, hypotheses in crowd:
        assert_equals_reference(transformer, request, hypotheses)
    assert sum(request.search.num_groups > 1 for request, _ in crowd) > CROWD // 3


@backends
def test_beside_phrases_and_draws_groups_stay_what_they_are(opener: Callable[..., Backend]) -> None:
    def vary(rng: random.Random, request: DecodeRequest) -> DecodeRequest:
        return rng.choice([with_groups, with_phrases, with_sampling])(rng, request)

    transformer = small_transformer(eos_bias=1.0)
    crowd = run_in_a_crowd(transformer, random.Random(47), CROWD, opener=opener, vary=vary)
    for request, hypotheses in crowd:
        assert_equals_reference(transformer, request, hypotheses)
    assert any(request.phrases for request, _ in crowd)
    assert any(request.search.num_groups > 1 for request, _ in crowd)
    assert any(request.search.sampling for request, _ in crowd)


def test_recorded_steps_serve_sentences_with_other_groups_and_penalties() -> None:
    transformer = small_transformer(num_encoder_layers=1, num_decoder_layers=1)
    session = DecodingSession(
        transformer,
        tokens=TOKENS,
        limits=LIMITS,
        opener=partial(GridBackend, recorder=TracedSteps()),
    )
    for penalty, num_groups in ((0.5, 2), (3.0, 2), (0.5, 1)):
        search = SearchConfig(
            beam_size=4,
            num_hypotheses=3,
            max_length=5,
            num_groups=num_groups,
            diversity_penalty=penalty if num_groups > 1 else 0.0,
        )
        request = DecodeRequest(source_ids=(4, 9, 1), prefix_ids=(0,), search=search)
        session.admit([request])
        while not (finished := session.step()):
            pass
        assert_equals_reference(transformer, request, finished[0].hypotheses)


def test_groups_outlive_the_growth_of_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "_FEWEST", {"slots": 1, "columns": 16, "sources": 16})
    transformer = small_transformer(num_encoder_layers=1, num_decoder_layers=1)
    session = DecodingSession(transformer, tokens=TOKENS, limits=LIMITS, opener=BACKENDS["grid"])
    rng = random.Random(53)
    search = SearchConfig(
        beam_size=4, num_hypotheses=4, max_length=8, num_groups=2, diversity_penalty=1.0
    )
    requests = [random_request(rng, search) for _ in range(3)]
    running = {}
    for request in requests:
        running[session.admit([request])[0]] = request
        for sentence in session.step():
            assert_equals_reference(transformer, running.pop(sentence.slot_id), sentence.hypotheses)
    while running:
        for sentence in session.step():
            assert_equals_reference(transformer, running.pop(sentence.slot_id), sentence.hypotheses)


@backends
def test_the_first_group_is_a_search_of_its_own(opener: Callable[..., Backend]) -> None:
    transformer = small_transformer(eos_bias=1.0)
    for seed in range(4):
        alone = SearchConfig(beam_size=2, num_hypotheses=1, max_length=8)
        request = random_request(random.Random(seed), alone)
        (expected,) = found_by(transformer, request, opener)
        divided = replace(alone, beam_size=6, num_hypotheses=3, num_groups=3, diversity_penalty=2.0)
        found = found_by(transformer, structs.replace(request, search=divided), opener)
        assert expected.token_ids in [one.token_ids for one in found]


@backends
def test_with_a_large_penalty_no_group_begins_as_another(opener: Callable[..., Backend]) -> None:
    transformer = small_transformer(eos_bias=-5.0)
    search = SearchConfig(
        beam_size=4, num_hypotheses=4, max_length=8, num_groups=4, diversity_penalty=100.0
    )
    for seed in range(3):
        found = found_by(transformer, random_request(random.Random(seed), search), opener)
        assert len({one.token_ids[0] for one in found}) == 4
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@backends
def test_scores_are_the_networks_own_without_the_penalty(opener: Callable[..., Backend]) -> None:
    transformer = small_transformer(eos_bias=1.0)
    search = SearchConfig(
        beam_size=4, num_hypotheses=4, max_length=8, num_groups=2, diversity_penalty=5.0
    )
    for one in found_by(transformer, random_request(random.Random(3), search), opener):
        assert one.score == pytest.approx(sum(one.token_log_probs) / len(one.token_log_probs))


@backends
def test_phrases_are_refused_where_beams_are_divided(opener: Callable[..., Backend]) -> None:
    session = DecodingSession(small_transformer(), tokens=TOKENS, limits=LIMITS, opener=opener)
    search = SearchConfig(beam_size=4, max_length=8, num_groups=2, diversity_penalty=1.0)
    request = DecodeRequest(source_ids=(4, 1), prefix_ids=(0,), search=search, phrases=(((5, 6),),))
    with pytest.raises(InputError, match=r"2 groups of beams has 1 phrases; it may have 0"):
        session.admit([request])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_groups": 0}, r"num_groups is 0; it must be at least 1"),
        ({"num_groups": 3, "diversity_penalty": 1.0}, r"beam_size is 4; it must be a multiple"),
        ({"num_groups": 2}, r"diversity_penalty is 0.0; with num_groups \(2\) it must be above 0"),
        ({"num_groups": 2, "diversity_penalty": 101.0}, r"diversity_penalty is 101.0; with"),
        ({"diversity_penalty": 0.5}, r"diversity_penalty is 0.5; without num_groups it must be 0"),
        ({"num_groups": 2, "diversity_penalty": 0.5, "sampling": Sampling()}, r"num_groups is 2"),
    ],
)  # fmt: skip
def test_what_no_beam_can_be_divided_by_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SearchConfig(beam_size=4, **values)


def test_where_nobody_has_groups_a_step_knows_nothing_of_them() -> None:
    plain = [SearchConfig(), SearchConfig(beam_size=1)]
    assert diversity_of(plain, device=torch.device("cpu"), dtype=torch.float32) is None
