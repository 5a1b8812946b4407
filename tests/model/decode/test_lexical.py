"""Searches that have to contain phrases against a plain search that has to, in every backend."""

import random
from collections.abc import Callable
from functools import partial

import pytest

from model.decode.backends.base import Backend
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.recording import Rerun
from model.decode.backends.eager.backend import EagerBackend
from model.decode.backends.plain import PlainBackend
from support.search_cases import (
    assert_equals_reference,
    run_in_a_crowd,
    small_transformer,
    with_phrases,
)

BACKENDS: dict[str, Callable[..., Backend]] = {
    "plain": PlainBackend,
    "eager": EagerBackend,
    "grid": partial(GridBackend, recorder=Rerun()),
}
backends = pytest.mark.parametrize("opener", BACKENDS.values(), ids=BACKENDS.keys())


@backends
def test_phrases_are_in_every_hypothesis_that_ended_by_itself(
    opener: Callable[..., Backend],
) -> None:
    transformer = small_transformer(eos_bias=1.0)
    crowd = run_in_a_crowd(transformer, random.Random(31), 24, opener=opener, vary=with_phrases)
    for request, hypotheses in crowd:
        assert_equals_reference(transformer, request, hypotheses)
        for one in hypotheses:
            assert one.is_truncated or one.num_missed == 0
    assert 8 < sum(bool(request.phrases) for request, _ in crowd) < 24
    assert any(one.num_missed for _, hypotheses in crowd for one in hypotheses)
