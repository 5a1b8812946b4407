"""Searches that have to contain phrases against a plain search that has to, in every backend."""

import random
from collections.abc import Callable
from functools import partial

import pytest

from model.config import SearchConfig
from model.decode.backends.base import Backend
from model.decode.backends.cuda import tables as tables_module
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.recording import Rerun
from model.decode.backends.eager.backend import EagerBackend
from model.decode.backends.plain.backend import PlainBackend
from model.decode.lexical import Automata, LexicalStep
from model.decode.session import DecodeRequest, DecodingSession, FinishedSentence
from support.search_cases import (
    LIMITS,
    TOKENS,
    assert_equals_reference,
    run_in_a_crowd,
    small_transformer,
    with_phrases,
)
from support.traced_steps import TracedSteps

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
    crowd = run_in_a_crowd(transformer, random.Random(31), 18, opener=opener, vary=with_phrases)
    for request, hypotheses in crowd:
        assert_equals_reference(transformer, request, hypotheses)
        for one in hypotheses:
            assert one.is_truncated or one.num_missed == 0
    assert sum(bool(request.phrases) for request, _ in crowd) > 6
    assert any(one.num_missed for _, hypotheses in crowd for one in hypotheses)


def test_recorded_steps_hold_sentences_that_come_later() -> None:
    transformer = small_transformer(num_encoder_layers=1, num_decoder_layers=1)
    recorder = TracedSteps()
    session = DecodingSession(
        transformer, tokens=TOKENS, limits=LIMITS, opener=partial(GridBackend, recorder=recorder)
    )
    search = SearchConfig(beam_size=2, max_length=3)
    for phrases in ((((7, 5),),), (((9,), (4, 4)), ((3,),))):
        request = DecodeRequest(
            source_ids=(4, 9, 1), prefix_ids=(0,), search=search, phrases=phrases
        )
        session.admit([request])
        finished: list[FinishedSentence] = []
        while not finished:
            finished = session.step()
        assert_equals_reference(transformer, request, finished[0].hypotheses)


def test_automata_and_states_outlive_the_growth_of_a_grid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tables_module, "_FEWEST", {"slots": 1, "columns": 16, "sources": 16})
    transformer = small_transformer(num_encoder_layers=1, num_decoder_layers=1)
    session = DecodingSession(transformer, tokens=TOKENS, limits=LIMITS, opener=BACKENDS["grid"])
    search = SearchConfig(beam_size=2, max_length=6)
    first, second = (
        DecodeRequest(source_ids=(4, 9, 1), prefix_ids=(0,), search=search, phrases=phrases)
        for phrases in ((((7, 5, 9),),), (((9,), (4, 4)), ((3,),)))
    )
    running = {session.admit([first])[0]: first}
    for _ in range(2):
        session.step()
    running[session.admit([second])[0]] = second
    while not session.is_idle:
        for finished in session.step():
            assert_equals_reference(transformer, running.pop(finished.slot_id), finished.hypotheses)
    assert not running


@pytest.mark.parametrize("name", BACKENDS)
def test_a_plain_search_makes_no_automaton(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("phrases were looked at")

    for function in ("_pool", "after"):
        monkeypatch.setattr(LexicalStep, function, refuse)
    monkeypatch.setattr(Automata, "step", refuse)
    transformer = small_transformer(num_encoder_layers=1, num_decoder_layers=1)
    crowd = run_in_a_crowd(transformer, random.Random(2), 4, opener=BACKENDS[name])
    assert len(crowd) >= 4
