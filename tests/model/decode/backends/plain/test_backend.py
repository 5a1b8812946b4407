"""The search over the plain network against the slow search and the backends with caches."""

import random
from collections.abc import Sequence

import pytest
import torch

from model.decode.backends import floats, opening
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.eager.backend import EagerBackend
from model.decode.backends.plain.backend import PlainBackend
from model.decode.session import DecodeRequest, DecodingSession, Hypothesis
from support.search_cases import (
    LIMITS,
    TOKENS,
    assert_equals_reference,
    random_request,
    run_in_a_crowd,
    small_transformer,
)

IN_ATTENTION = ("rope", "alibi")


def assert_equal(found: Sequence[Hypothesis], expected: Sequence[Hypothesis]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (one.token_ids, one.alignment) == (other.token_ids, other.alignment)
        assert one.is_truncated == other.is_truncated
        assert one.score == pytest.approx(other.score, abs=1e-10)
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-10)


@pytest.mark.parametrize("position", [*IN_ATTENTION, "sinusoidal-marian"])
@pytest.mark.parametrize(
    "shape", [{}, {"norm_placement": "pre", "norm": "rmsnorm", "activation": "silu"}]
)
def test_in_a_crowd_every_sentence_has_the_hypotheses_of_the_slow_search(
    position: str, shape: dict[str, object]
) -> None:
    transformer = small_transformer(position=position, **shape)
    crowd = run_in_a_crowd(transformer, random.Random(7), 12, opener=PlainBackend)
    for request, hypotheses in crowd:
        assert_equals_reference(transformer, request, hypotheses)


def test_suppressed_tokens_are_chosen_by_no_hypothesis_of_their_sentence() -> None:
    transformer = small_transformer(position="rope", eos_bias=1.0)
    crowd = run_in_a_crowd(
        transformer, random.Random(17), 30, opener=PlainBackend, has_suppressed=True
    )
    for request, hypotheses in crowd:
        assert_equals_reference(transformer, request, hypotheses)
        chosen = {token for one in hypotheses for token in one.token_ids}
        assert chosen.isdisjoint(request.suppressed_ids)
    assert 5 < sum(bool(request.suppressed_ids) for request, _ in crowd) < 25


@pytest.mark.parametrize("position", ["sinusoidal-marian", "learned", "relative"])
def test_it_is_an_oracle_of_the_backend_with_caches(position: str) -> None:
    """Alignments and all: the crowd is admitted, stepped and released alike."""
    transformer = small_transformer(position=position, max_positions=64)
    plain, eager = (
        run_in_a_crowd(transformer, random.Random(13), 40, opener=opener)
        for opener in (PlainBackend, EagerBackend)
    )
    assert sum(hypotheses[0].alignment is not None for _, hypotheses in plain) > 5
    for crowd in (plain, eager):  # those that end together have no order
        crowd.sort(key=lambda pair: pair[0].source_ids)
    for (request, found), (same_request, expected) in zip(plain, eager, strict=True):
        assert request == same_request
        assert_equal(found, expected)


@pytest.mark.parametrize("position", IN_ATTENTION)
def test_alignments_follow_the_cross_attention_of_the_last_layer(position: str) -> None:
    transformer = small_transformer(position=position)
    rng = random.Random(6)
    aligned = [
        (request, hypothesis)
        for request, hypotheses in run_in_a_crowd(transformer, rng, 15, opener=PlainBackend)
        for hypothesis in hypotheses
        if hypothesis.alignment is not None
    ]
    assert aligned
    for request, hypothesis in aligned:
        target = torch.tensor([[*request.prefix_ids, *hypothesis.token_ids]])
        maps = transformer.attention_maps(torch.tensor([request.source_ids]), target)
        start = len(request.prefix_ids) - 1
        expected = maps.cross[-1][0].mean(dim=0)[start:-1].argmax(dim=-1)
        assert hypothesis.alignment == tuple(expected.tolist())


def test_a_forced_first_token_is_the_first_of_every_hypothesis() -> None:
    tokens = type(TOKENS)(pad_id=0, eos_id=1, unk_id=2, start_id=0, forced_first_id=9)
    transformer = small_transformer(position="rope")
    for request, hypotheses in run_in_a_crowd(
        transformer, random.Random(3), 12, tokens=tokens, opener=PlainBackend
    ):
        for hypothesis in hypotheses:  # of one token: its EOS is forced
            assert hypothesis.token_ids[:1] in ((9,), ())
            assert bool(hypothesis.token_ids) == (request.search.max_length > 1)


@pytest.mark.parametrize("position", IN_ATTENTION)
def test_it_runs_what_no_other_backend_runs(position: str) -> None:
    backend = opening.open_backend(
        small_transformer(position=position), tokens=TOKENS, limits=LIMITS
    )
    assert isinstance(backend, PlainBackend)
    assert f"network.position is '{position}'" in str(
        floats.slow_reason(small_transformer(position=position).config)
    )


def test_it_runs_nothing_that_another_backend_runs() -> None:
    transformer = small_transformer()
    assert floats.slow_reason(transformer.config) is None
    backend = opening.open_backend(transformer, tokens=TOKENS, limits=LIMITS)
    assert isinstance(backend, EagerBackend | GridBackend)


def test_a_sentence_without_finite_scores_fails_alone() -> None:
    transformer = small_transformer(position="rope", share_embeddings=False, tie_output=False)
    poison = 7
    with torch.no_grad():
        transformer.source_embedding.weight[poison] = float("nan")
    session = DecodingSession(transformer, tokens=TOKENS, limits=LIMITS)
    healthy = random_request(random.Random(1))
    while poison in healthy.source_ids:
        healthy = random_request(random.Random(2))
    poisoned = DecodeRequest(source_ids=(4, poison, 1), prefix_ids=(0,), search=healthy.search)
    first, second = session.admit([poisoned, healthy])
    found = {}
    while not session.is_idle:
        found |= {done.slot_id: done.hypotheses for done in session.step()}
    assert found[first] == ()
    assert_equals_reference(transformer, healthy, found[second])


def test_a_failing_encoder_leaves_no_sentence_behind() -> None:
    session = DecodingSession(small_transformer(position="alibi"), tokens=TOKENS, limits=LIMITS)
    request = random_request(random.Random(5))
    outside = DecodeRequest(source_ids=(99, 1), prefix_ids=(0,), search=request.search)
    with pytest.raises(IndexError):
        session.admit([outside])  # 99 is not in the vocabulary
    session.check_integrity()
    assert session.is_idle
    assert session.num_encoded_tokens == 0
    session.admit([request])
    assert session.num_encoded_tokens == len(request.source_ids)
    session.step()
    seconds = session.step_seconds()
    assert seconds["output"] > 0 < seconds["search"]
