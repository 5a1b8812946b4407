"""The session against Hugging Face `generate` on the same weights, hypothesis for hypothesis."""

import random

import pytest
import torch

from model.config import SearchConfig, StoppingRule
from model.decode.session import DecodeRequest, DecodingSession, SessionLimits
from support.huggingface import Comparison, generate, marian_twin
from support.search_cases import TOKENS, random_request, small_transformer

RULES: list[StoppingRule] = ["first", "heuristic", "bound"]


def run_together(session: DecodingSession, requests: list[DecodeRequest]) -> list:  # type: ignore[type-arg]
    slots = session.admit(requests)
    done = {}
    while not session.is_idle:
        done |= {finished.slot_id: finished.hypotheses for finished in session.step()}
    return [done[slot] for slot in slots]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("alpha", [1.0, 0.0, -0.5, 1.7])
def test_random_networks_give_what_generate_gives(rule: StoppingRule, alpha: float) -> None:
    transformer = small_transformer(dtype=torch.float32, eos_bias=2.0)
    twin = marian_twin(transformer, TOKENS)
    limits = SessionLimits(max_rows=80, max_slots=20, max_source_length=16, max_target_length=32)
    session = DecodingSession(transformer, tokens=TOKENS, limits=limits)
    search = SearchConfig(
        beam_size=4, num_hypotheses=4, length_penalty=alpha, stopping=rule, max_length=14
    )
    rng = random.Random(9)
    requests = [
        DecodeRequest(
            source_ids=random_request(rng, search).source_ids, prefix_ids=(0,), search=search
        )
        for _ in range(20)
    ]
    comparison = Comparison()
    ours = run_together(session, requests)
    theirs = generate(twin, TOKENS, requests)
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        comparison.add(str(number), mine, other)
    assert comparison.differences == []
    assert len(comparison.ties) <= 2
