"""Attention of finished hypotheses in every backend, against what the searches noted themselves."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from model.config import SearchConfig
from model.decode import attention
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.recording import Rerun
from model.decode.backends.int8 import Int8Backend
from model.decode.backends.plain.backend import PlainBackend
from model.decode.session import DecodeRequest, DecodingSession, Hypothesis
from model.native import kernels
from support.int8_cases import SHAPES, random_network
from support.search_cases import LIMITS, TOKENS, random_request, small_transformer

Open = Callable[[], DecodingSession]
SEARCH = SearchConfig(
    beam_size=3, num_hypotheses=3, max_length=12, with_alignment=True, with_attention=True
)


def _torch(**options: object) -> DecodingSession:
    transformer = small_transformer(eos_bias=1.0)
    return DecodingSession(transformer, tokens=TOKENS, limits=LIMITS, **options)  # type: ignore[arg-type]


def _int8(shape: str) -> DecodingSession:
    if kernels.find_problem() is not None:
        pytest.skip(f"no kernels here: {kernels.find_problem()}")
    network, _ = random_network(SHAPES[shape], num_threads=1)
    return DecodingSession(network, tokens=TOKENS, limits=LIMITS)


BACKENDS: dict[str, Open] = {
    "eager": _torch,
    "plain": partial(_torch, opener=PlainBackend),
    "grid": partial(_torch, opener=partial(GridBackend, recorder=Rerun())),
    "int8": partial(_int8, "post-norm, tied"),
    "int8, ssru": partial(_int8, "ssru"),
}


def _weights(found: Hypothesis) -> np.ndarray:
    assert found.attention is not None
    return np.frombuffer(found.attention, dtype="<f2").reshape(len(found.token_ids), -1)


def _found(session: DecodingSession, *requests: DecodeRequest) -> list[tuple[Hypothesis, ...]]:
    slots = session.admit(requests)
    found: dict[int, tuple[Hypothesis, ...]] = {}
    while not session.is_idle:
        found |= {one.slot_id: one.hypotheses for one in session.step()}
    session.check_integrity()
    return [found[slot] for slot in slots]


@pytest.mark.parametrize("name", BACKENDS)
def test_weights_are_those_whose_highest_the_search_noted(name: str) -> None:
    rng = random.Random(5)
    requests = [random_request(rng, SEARCH) for _ in range(4)]
    quiet = random_request(rng, replace(SEARCH, with_attention=False))
    *found, other = _found(BACKENDS[name](), *requests, quiet)
    assert all(one.attention is None for one in other)
    num_rows = 0
    for request, hypotheses in zip(requests, found, strict=True):
        for one in hypotheses:
            if not one.token_ids:
                continue
            weights = _weights(one).astype(np.float64)
            assert weights.shape == (len(one.token_ids), len(request.source_ids))
            np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=0.01)
            assert one.alignment is not None
            noted = weights[np.arange(len(weights)), one.alignment]
            np.testing.assert_allclose(noted, weights.max(axis=1), atol=1e-3)
            num_rows += len(weights)
    assert num_rows > 20


def test_what_runs_beside_it_and_what_it_finds_stay_the_same() -> None:
    rng = random.Random(6)
    requests = [random_request(rng, SEARCH) for _ in range(3)]
    plain = [
        DecodeRequest(
            source_ids=one.source_ids,
            prefix_ids=one.prefix_ids,
            search=replace(one.search, with_attention=False),
        )
        for one in requests
    ]
    asked, expected = (_found(_int8("post-norm, tied"), *all_) for all_ in (requests, plain))
    bare = [tuple(structs.replace(one, attention=None) for one in each) for each in asked]
    assert bare == expected


class _Counted:
    """A session of the kernels that counts what is encoded and fed."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name in ("encode", "feed"):
            self.calls.append(name)
        return getattr(self._session, name)


@pytest.mark.parametrize("shape", ["post-norm, tied", "ssru"])
def test_hypotheses_side_by_side_have_the_weights_that_each_has_alone(shape: str) -> None:
    rng = random.Random(8)
    session = _int8(shape)
    backend = session._backend
    assert isinstance(backend, Int8Backend)
    request = random_request(rng, SEARCH)
    session.admit([random_request(rng, replace(SEARCH, with_attention=False, max_length=18))])
    session.step()
    hypotheses = [(5, 6), (7, 8, 9, 10, 11), (12,), (5, 9, 4)]
    alone = [backend.attention(request, [one])[0] for one in hypotheses]
    counted = _Counted(backend._session)
    backend._session = counted  # type: ignore[assignment]
    together = backend.attention(request, hypotheses)
    num_fed = len(request.prefix_ids) + 4
    assert counted.calls == ["encode", *["feed"] * num_fed]
    for one, mine, its_own in zip(hypotheses, together, alone, strict=True):
        assert mine.shape == (len(one), len(request.source_ids))
        np.testing.assert_array_equal(mine, its_own)


def test_more_weights_than_the_bound_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    request = random_request(random.Random(7), replace(SEARCH, max_length=9))
    ((best, *_),) = _found(_torch(), request)
    size = len(best.token_ids) * len(request.source_ids)
    monkeypatch.setattr(attention, "MAX_ATTENTION_WEIGHTS", size - 1)
    ((other, *_),) = _found(_torch(), request)
    assert (other.token_ids, other.attention) == (best.token_ids, None)
