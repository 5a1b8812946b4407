"""Searches that say no n tokens twice against a plain search that does not, in every backend."""

import random
from collections.abc import Callable
from functools import partial

import pytest
import torch

from model.config import MAX_NO_REPEAT_NGRAM, SearchConfig
from model.decode.backends.base import Backend
from model.decode.backends.cuda import tables as tables_module
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.buckets import Bucket
from model.decode.backends.cuda.grid import Grid
from model.decode.backends.cuda.recording import Rerun, Step
from model.decode.backends.eager.backend import EagerBackend
from model.decode.backends.plain.backend import PlainBackend
from model.decode.repeats import paths, repeat_mask, united
from model.decode.session import DecodeRequest, DecodingSession, Hypothesis
from model.errors import ConfigError
from model.nn.transformer import Transformer
from support.reference_search import repeated
from support.search_cases import (
    CROWD,
    LIMITS,
    TOKENS,
    assert_equals_reference,
    run_in_a_crowd,
    small_transformer,
    without_repeats,
)
from support.traced_steps import TracedSteps

BACKENDS: dict[str, Callable[..., Backend]] = {
    "plain": PlainBackend,
    "eager": EagerBackend,
    "grid": partial(GridBackend, recorder=Rerun()),
}
backends = pytest.mark.parametrize("opener", BACKENDS.values(), ids=BACKENDS.keys())


def ngrams(tokens: tuple[int, ...], size: int) -> list[tuple[int, ...]]:
    return [tokens[at : at + size] for at in range(len(tokens) - size + 1)]


def searched(
    session: DecodingSession, search: SearchConfig, *, forced_ids: tuple[int, ...] = ()
) -> tuple[DecodeRequest, tuple[Hypothesis, ...]]:
    request = DecodeRequest(
        source_ids=(4, 9, 1), prefix_ids=(0,), search=search, forced_ids=forced_ids
    )
    session.admit([request])
    while not (finished := session.step()):
        pass
    return request, finished[0].hypotheses


def opened(transformer: Transformer, opener: Callable[..., Backend]) -> DecodingSession:
    return DecodingSession(transformer, tokens=TOKENS, limits=LIMITS, opener=opener)


def test_a_mask_has_what_would_end_an_ngram_that_is_there_and_nothing_else() -> None:
    rng = random.Random(3)
    lengths = [rng.randint(0, 14) for _ in range(200)]
    starts = [rng.randint(0, 3) for _ in lengths]
    sizes = [rng.randint(0, 4) for _ in lengths]
    tokens = torch.randint(0, 4, (len(lengths), 20), generator=torch.manual_seed(5))
    mask = repeat_mask(
        tokens,
        torch.tensor(starts),
        torch.tensor(starts) + torch.tensor(lengths),
        torch.tensor(sizes),
        max_size=5,
        vocab_size=4,
    )
    for row, (start, length, size) in enumerate(zip(starts, lengths, sizes, strict=True)):
        said = tokens[row, start : start + length].tolist()
        assert set(mask[row].nonzero().flatten().tolist()) == repeated(said, size)
    assert mask.any()


def test_a_row_of_a_tree_was_fed_what_its_ancestors_were() -> None:
    ancestors = torch.tensor([[[[1, 0], [0, 1], [0, 0]], [[1, 0], [1, 0], [0, 0]]]]).bool()
    nodes = torch.tensor([[[3, 4], [5, 6], [7, 8]]])
    assert paths(ancestors, nodes).tolist() == [[[3, 6, 0], [3, 5, 0]]]


def test_masks_are_united_and_without_any_there_is_none() -> None:
    one, other = torch.tensor([[True, False]]), torch.tensor([[False, False]])
    assert united(None, None) is None
    assert united(one, None) is united(None, one) is one
    both = united(one, other)
    assert both is not None
    assert both.tolist() == [[True, False]]


@pytest.mark.parametrize("size", [-1, MAX_NO_REPEAT_NGRAM + 1])
def test_ngrams_that_no_search_looks_for_are_refused_by_their_number(size: int) -> None:
    with pytest.raises(ConfigError, match=f"no_repeat_ngram is {size}; it must be from 0 to 16"):
        SearchConfig(no_repeat_ngram=size)


@backends
@pytest.mark.parametrize("eos_bias", [-3.0, 1.0])
def test_nothing_is_said_twice_by_who_may_not_whoever_is_beside_them(
    opener: Callable[..., Backend], eos_bias: float
) -> None:
    transformer = small_transformer(eos_bias=eos_bias)
    crowd = run_in_a_crowd(
        transformer, random.Random(61), CROWD, opener=opener, vary=without_repeats
    )
    for request, hypotheses in crowd:
        assert_equals_reference(transformer, request, hypotheses)
        size = request.search.no_repeat_ngram
        for one in hypotheses:
            own = ngrams(one.token_ids, size) if size and not request.forced_ids else []
            assert len(own) == len(set(own))
    assert 4 < sum(request.search.no_repeat_ngram > 0 for request, _ in crowd) < CROWD


@backends
def test_what_is_forced_comes_again_and_counts(opener: Callable[..., Backend]) -> None:
    transformer = small_transformer(eos_bias=-20.0)
    search = SearchConfig(beam_size=2, max_length=9, no_repeat_ngram=2)
    session = opened(transformer, opener)
    request, hypotheses = searched(session, search, forced_ids=(5, 6, 5, 6))
    assert_equals_reference(transformer, request, hypotheses)
    assert hypotheses[0].token_ids[:4] == (5, 6, 5, 6)
    assert (6, 5) not in ngrams(hypotheses[0].token_ids[3:], 2)


def test_recorded_steps_hold_sentences_with_other_ngrams() -> None:
    transformer = small_transformer(num_encoder_layers=1, num_decoder_layers=1, eos_bias=-20.0)
    session = opened(transformer, partial(GridBackend, recorder=TracedSteps()))
    for size in (2, 1, 2, 0, 3):
        search = SearchConfig(beam_size=2, max_length=8, no_repeat_ngram=size)
        assert_equals_reference(transformer, *searched(session, search))


def test_what_was_fed_outlives_the_growth_of_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "_FEWEST", {"slots": 1, "columns": 16, "sources": 16})
    transformer = small_transformer(num_encoder_layers=1, num_decoder_layers=1, eos_bias=-20.0)
    session = opened(transformer, BACKENDS["grid"])
    search = SearchConfig(beam_size=2, max_length=20, no_repeat_ngram=2)
    first, second = (
        DecodeRequest(source_ids=source, prefix_ids=(0,), search=search)
        for source in ((4, 9, 1), (5, 3, 8, 1))
    )
    running = dict(zip(session.admit([first]), [first], strict=True))
    for _ in range(4):
        session.step()
    running |= dict(zip(session.admit([second]), [second], strict=True))
    while not session.is_idle:
        for finished in session.step():
            assert_equals_reference(transformer, running.pop(finished.slot_id), finished.hypotheses)
    assert not running


def test_only_while_a_sentence_may_not_repeat_itself_does_a_step_look_at_what_was_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stepped: list[Bucket] = []
    make_step = Grid._step

    def noted(grid: Grid, bucket: Bucket) -> Step:
        stepped.append(bucket)
        return make_step(grid, bucket)

    monkeypatch.setattr(Grid, "_step", noted)
    session = opened(small_transformer(eos_bias=-20.0), BACKENDS["grid"])
    for size in (0, 5, 0):
        searched(session, SearchConfig(beam_size=2, max_length=4, no_repeat_ngram=size))
    sizes = [bucket.no_repeat_ngram for bucket in stepped]
    third = len(sizes) // 3
    assert sizes == [0] * third + [6] * third + [0] * third
