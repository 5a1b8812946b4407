"""Tokens of greedy searches while they run, in every backend: the oracle is what they end with."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
import torch
from msgspec import structs

from model.config import Sampling, SearchConfig
from model.decode.backends.base import Backend
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.recording import Rerun
from model.decode.backends.opening import Network, open_backend
from model.decode.backends.plain.backend import PlainBackend
from model.decode.session import DecodeRequest, DecodingSession, Hypothesis
from model.native import kernels
from support.int8_cases import SHAPES, random_network
from support.search_cases import LIMITS, TOKENS, random_request, random_search, small_transformer

Opened = tuple[Network, Callable[..., Backend]]


def _kernels(name: str) -> Opened:
    problem = kernels.find_problem()
    if problem is not None:
        pytest.skip(f"no kernels here: {problem}")
    return random_network(SHAPES[name])[0], open_backend


BACKENDS: dict[str, Callable[[], Opened]] = {
    "eager": lambda: (small_transformer(), open_backend),
    "eager, ssru": lambda: (
        small_transformer(decoder_cell="ssru", position="sinusoidal-m2m100"),
        open_backend,
    ),
    "plain": lambda: (small_transformer(), PlainBackend),
    "grid": lambda: (small_transformer(), partial(GridBackend, recorder=Rerun())),
    "int8": lambda: _kernels("post-norm, tied"),
    "int8, ssru": lambda: _kernels("ssru"),
}


@pytest.fixture(params=BACKENDS)
def opened(request: pytest.FixtureRequest) -> Opened:
    return BACKENDS[request.param]()


def _session(opened: Opened) -> DecodingSession:
    network, opener = opened
    return DecodingSession(network, tokens=TOKENS, limits=LIMITS, opener=opener)


def _watched(rng: random.Random) -> DecodeRequest:
    sampling = rng.choice([None, None, Sampling(temperature=1.0, seed=rng.randrange(100))])
    search = SearchConfig(
        beam_size=1,
        max_length=rng.randint(1, 14),
        length_penalty=rng.choice([0.0, 1.0, -1.0]),
        stopping=rng.choice(["exact", "first", "heuristic", "bound"]),
        with_alignment=rng.random() < 0.3,
        no_repeat_ngram=rng.choice([0, 2]),
        sampling=sampling,
    )
    forced = rng.choice([(), (), (5, 9)])
    return structs.replace(random_request(rng, search), forced_ids=forced)


def _run(
    session: DecodingSession, rng: random.Random, num_sentences: int
) -> list[tuple[list[list[int]], Hypothesis]]:
    """What was written of each watched sentence after every step, and what it ended with.

    Sentences with wider beams join and leave beside them, so that rows and slots move.
    """
    seen: dict[int, list[list[int]]] = {}
    ended = []
    started = 0
    while started < num_sentences or not session.is_idle:
        if started < num_sentences and session.free_slots > 1 and session.free_rows > 6:
            beside = random_request(rng, replace(random_search(rng), beam_size=3, num_hypotheses=1,
                                                 num_candidates=None))  # fmt: skip
            (watched, other) = session.admit([_watched(rng), beside])
            seen[watched] = []
            started += 1
            if rng.random() < 0.3:
                session.release(other)
        finished = session.step()
        ended += [
            (seen.pop(sentence.slot_id), sentence.hypotheses[0])
            for sentence in finished
            if sentence.slot_id in seen
        ]
        for slot_id, states in seen.items():
            states.append(session.written(slot_id))
    return ended


def test_what_is_written_only_ever_grows_into_what_the_search_ends_with(opened: Opened) -> None:
    ended = _run(_session(opened), random.Random(5), 40)
    assert len(ended) == 40
    for states, hypothesis in ended:
        for before, after in pairwise(states):
            assert after[: len(before)] == before
            assert len(after) - len(before) <= 1
        for state in states:
            assert tuple(state) == hypothesis.token_ids[: len(state)]
    assert sum(len(states) > 4 for states, _ in ended) > 10


def test_every_token_is_there_before_the_end_of_the_sentence(opened: Opened) -> None:
    # A grid works ahead, and reads its last steps at once.
    ends_behind = isinstance(opened[1], partial)
    ended = _run(_session(opened), random.Random(6), 30)
    for states, hypothesis in ended:
        num_written = len(states[-1]) if states else 0
        assert num_written >= len(hypothesis.token_ids) - ends_behind


def test_nothing_is_written_while_the_prefix_is_fed(opened: Opened) -> None:
    session = _session(opened)
    search = SearchConfig(beam_size=1, max_length=6)
    request = DecodeRequest(source_ids=(5, 6, 1), prefix_ids=(0, 7, 8, 9), search=search)
    (slot_id,) = session.admit([request])
    assert session.written(slot_id) == []
    for _ in range(3):
        assert session.step() == []
        assert session.written(slot_id) == []


@pytest.mark.parametrize("name", ["eager", "int8"])
def test_a_search_with_several_beams_has_nothing_written_that_would_stay(name: str) -> None:
    session = _session(BACKENDS[name]())
    search = SearchConfig(beam_size=2, max_length=6)
    (slot_id,) = session.admit([random_request(random.Random(1), search)])
    with pytest.raises(AssertionError):
        session.written(slot_id)


def test_a_plain_search_reads_no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    monkeypatch.delattr("model.decode.backends.eager.backend.EagerBackend.written")
    session = _session(BACKENDS["eager"]())
    session.admit([random_request(random.Random(1), SearchConfig(beam_size=1, max_length=6))])
    while not session.is_idle:
        session.step()
