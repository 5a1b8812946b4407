"""Networks of other families, decoded by both PyTorch backends, against the plain search."""

import random
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from model.config import SearchConfig
from model.decode.backends.base import Backend
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.buckets import padded_vocabulary
from model.decode.backends.cuda.recording import Rerun
from model.decode.backends.eager.backend import EagerBackend
from model.decode.backends.floats import slow_reason
from model.decode.session import DecodingSession, SessionLimits
from support.search_cases import (
    CROWD,
    FAMILIES,
    LIMITS,
    TOKENS,
    assert_equals_reference,
    families,
    random_request,
    run_in_a_crowd,
    small_transformer,
)
from support.traced_steps import TracedSteps

VOCABULARY = 5000

OPENERS = {"eager": EagerBackend, "grid": partial(GridBackend, recorder=Rerun())}
both = pytest.mark.parametrize("opener", OPENERS.values(), ids=OPENERS.keys())


@both
@families
def test_in_float64_a_crowd_never_changes_a_sentence(
    opener: Callable[..., Backend], shape: dict[str, object]
) -> None:
    """Sources are padded, rows reordered, copied and given away, columns wrap."""
    transformer = small_transformer(**shape)
    assert slow_reason(transformer.config) is None
    for request, hypotheses in run_in_a_crowd(transformer, random.Random(53), CROWD, opener=opener):
        assert_equals_reference(transformer, request, hypotheses)


@both
@pytest.mark.parametrize("name", ["student", "t5"])
def test_of_four_beams_that_end_one_by_one_each_keeps_its_own_past(
    opener: Callable[..., Backend], name: str
) -> None:
    transformer = small_transformer(eos_bias=2.0, **FAMILIES[name])
    search = SearchConfig(beam_size=4, num_hypotheses=4, max_length=14, length_penalty=0.6)
    session = DecodingSession(transformer, tokens=TOKENS, limits=LIMITS, opener=opener)
    rng = random.Random(59)
    num_lengths = []
    for _ in range(3):
        requests = [random_request(rng, search) for _ in range(4)]
        running = dict(zip(session.admit(requests), requests, strict=True))
        while not session.is_idle:
            for finished in session.step():
                hypotheses = finished.hypotheses
                assert_equals_reference(transformer, running[finished.slot_id], hypotheses)
                num_lengths.append(len({len(each.token_ids) for each in hypotheses}))
    assert max(num_lengths) > 2


@families
def test_recorded_steps_bake_nothing_in(shape: dict[str, object]) -> None:
    transformer = small_transformer(**shape | {"num_encoder_layers": 1, "num_decoder_layers": 1})
    limits = SessionLimits(max_rows=8, max_slots=2, max_source_length=16, max_target_length=24)
    recorder = TracedSteps()
    opener = partial(GridBackend, recorder=recorder)
    session = DecodingSession(transformer, tokens=TOKENS, limits=limits, opener=opener)
    rng = random.Random(61)
    search = SearchConfig(beam_size=4, num_hypotheses=4, max_length=12)
    for _ in range(4):
        requests = [random_request(rng, search) for _ in range(2)]
        running = {session.admit(requests[:1])[0]: requests[0]}
        for number in range(40):
            if number == 3:
                running |= dict(zip(session.admit(requests[1:]), requests[1:], strict=True))
            for finished in session.step():
                request = running.pop(finished.slot_id)
                assert_equals_reference(transformer, request, finished.hypotheses)
    assert not running
    assert recorder.num_replayed > 20


@both
def test_relative_distances_past_the_last_bucket_are_found(opener: Callable[..., Backend]) -> None:
    """150 tokens: past the 128 from which on T5 tells no distances apart."""
    shape = FAMILIES["t5"] | {"num_encoder_layers": 1, "num_decoder_layers": 1}
    transformer = small_transformer(eos_bias=-30.0, **shape)
    limits = SessionLimits(max_rows=4, max_slots=2, max_source_length=16, max_target_length=160)
    session = DecodingSession(transformer, tokens=TOKENS, limits=limits, opener=opener)
    search = SearchConfig(beam_size=2, num_hypotheses=2, max_length=150)
    request = random_request(random.Random(67), search)
    session.admit([request])
    finished = []
    while not session.is_idle:
        finished += session.step()
    for hypothesis in finished[0].hypotheses:
        target = torch.tensor([[*request.prefix_ids, *hypothesis.token_ids]])
        logits = transformer(torch.tensor([request.source_ids]), target)[0]
        log_probs = logits.log_softmax(dim=-1)[len(request.prefix_ids) - 1 : -1]
        expected = log_probs.gather(1, target[0, len(request.prefix_ids) :, None])[:, 0]
        assert len(expected) == 149
        assert hypothesis.token_log_probs[:-1] == pytest.approx(expected.tolist(), abs=1e-10)


@both
@families
def test_in_bfloat16_it_is_near_float32(
    opener: Callable[..., Backend], shape: dict[str, object]
) -> None:
    transformer = small_transformer(dtype=torch.float32, **shape)
    rng = random.Random(19)
    requests = [random_request(rng, SearchConfig(beam_size=1, max_length=4)) for _ in range(6)]
    scores = []
    for dtype in (torch.float32, torch.bfloat16):
        session = DecodingSession(
            transformer.to(dtype), tokens=TOKENS, limits=LIMITS, opener=opener
        )
        names, found = session.admit(requests), {}
        while not session.is_idle:
            found.update({s.slot_id: s.hypotheses[0].score for s in session.step()})
        scores.append([found[name] for name in names])
    assert scores[1] == pytest.approx(scores[0], abs=0.5)


class Allocations(TorchDispatchMode):
    """Sizes of what operations make, views of what there was left out."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        output = func(*args, **kwargs or {})
        known = {t.untyped_storage().data_ptr() for t in tree_leaves(args) if torch.is_tensor(t)}
        self.sizes += [
            made.numel()
            for made in tree_leaves(output)
            if torch.is_tensor(made) and made.untyped_storage().data_ptr() not in known
        ]
        return output


@both
@pytest.mark.parametrize("tie_output", [True, False])
def test_a_step_over_a_large_vocabulary_makes_its_logits_and_nothing_else_so_large(
    opener: Callable[..., Backend], monkeypatch: pytest.MonkeyPatch, *, tie_output: bool
) -> None:
    """Neither log probabilities of all rows nor a copy of the table of embeddings."""
    monkeypatch.setattr("model.decode.beam_search._MAX_AT_ONCE", VOCABULARY)
    transformer = small_transformer(
        dtype=torch.float32, vocab_size=VOCABULARY, tie_output=tie_output, d_model=8, eos_bias=-9.0
    )
    limits = SessionLimits(max_rows=12, max_slots=3, max_source_length=16, max_target_length=24)
    session = DecodingSession(transformer, tokens=TOKENS, limits=limits, opener=opener)
    search = SearchConfig(beam_size=4, max_length=12)
    session.admit([random_request(random.Random(seed), search) for seed in range(3)])
    session.step()
    with Allocations() as allocations:
        session.step()
    large = [size for size in allocations.sizes if size > 2 * VOCABULARY]
    columns = {VOCABULARY, padded_vocabulary(VOCABULARY)}  # of eager's logits and of a grid's
    assert len(large) == 1
    assert large[0] / 12 in columns
