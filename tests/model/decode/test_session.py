"""The session against the plain search, whatever else runs beside a sentence."""

import random

import pytest
import torch
from msgspec import structs

from model.config import SearchConfig
from model.decode.backends.eager import cache
from model.decode.backends.eager.backend import EagerBackend
from model.decode.backends.eager.cached import CachedNetwork
from model.decode.backends.eager.slots import Slot
from model.decode.session import DecodeRequest, DecodingSession, FinishedSentence, Hypothesis
from model.errors import CapacityError, InputError
from model.nn.transformer import Transformer
from support.search_cases import (
    CROWD,
    LIMITS,
    TOKENS,
    assert_equals_reference,
    random_request,
    random_search,
    run_in_a_crowd,
    small_transformer,
)


def run_alone(transformer: Transformer, request: DecodeRequest) -> tuple[Hypothesis, ...]:
    session = DecodingSession(transformer, tokens=TOKENS, limits=LIMITS)
    session.admit([request])
    return run_until_idle(session)[0].hypotheses


def run_until_idle(session: DecodingSession) -> list[FinishedSentence]:
    finished = []
    while not session.is_idle:
        finished.extend(session.step())
    return finished


@pytest.mark.parametrize("eos_bias", [-1.0, 1.0, 3.0])
@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"norm_placement": "pre", "activation": "gelu", "attention_bias": False},
        {"norm": "rmsnorm", "position": "learned", "max_positions": 64, "d_k": 6, "d_v": 10},
        {"position": "sinusoidal-m2m100", "position_offset": 2, "share_embeddings": False,
         "tie_output": False, "activation": "silu"},
    ],
    ids=["marian", "pre-norm", "rms-learned-uneven", "m2m100-separate"],
)  # fmt: skip
def test_in_float64_a_crowd_never_changes_a_sentence(
    eos_bias: float, shape: dict[str, object]
) -> None:
    transformer = small_transformer(eos_bias=eos_bias, **shape)
    for request, hypotheses in run_in_a_crowd(transformer, random.Random(7), CROWD):
        assert_equals_reference(transformer, request, hypotheses)


def test_tokens_are_suppressed_in_the_sentences_that_ask_for_it_and_in_no_other() -> None:
    transformer = small_transformer(eos_bias=1.0)
    crowd = run_in_a_crowd(transformer, random.Random(17), 2 * CROWD, has_suppressed=True)
    for request, hypotheses in crowd:
        assert_equals_reference(transformer, request, hypotheses)
        chosen = {token for one in hypotheses for token in one.token_ids}
        assert chosen.isdisjoint(request.suppressed_ids)
    num_asking = sum(bool(request.suppressed_ids) for request, _ in crowd)
    assert CROWD / 2 < num_asking < 3 * CROWD / 2


def test_without_eos_a_sentence_goes_on_to_its_cap() -> None:
    search = SearchConfig(beam_size=2, max_length=9)
    request = random_request(random.Random(1), search)
    endless = structs.replace(request, suppressed_ids=(TOKENS.eos_id,))
    (best,) = run_alone(small_transformer(eos_bias=5.0), endless)
    assert len(best.token_ids) == search.max_length - 1
    assert best.is_truncated


@pytest.mark.parametrize("token", [-1, 23])
def test_a_suppressed_token_that_does_not_exist_is_refused_and_nothing_is_admitted(
    token: int,
) -> None:
    session = DecodingSession(small_transformer(), tokens=TOKENS, limits=LIMITS)
    request = structs.replace(random_request(random.Random(1)), suppressed_ids=(5, token))
    with pytest.raises(InputError, match=f"a suppressed id is {token}; the vocabulary has 23"):
        session.admit([request])
    assert session.is_idle
    session.check_integrity()


def test_a_plain_search_makes_no_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    transformer = small_transformer()
    session = DecodingSession(transformer, tokens=TOKENS, limits=LIMITS)
    session.admit([structs.replace(random_request(random.Random(1)), suppressed_ids=(5,))])
    run_until_idle(session)
    monkeypatch.delattr("model.decode.backends.eager.cached.suppressed_mask")
    monkeypatch.delattr("model.decode.beam_search.suppress")
    request = random_request(random.Random(2))
    session.admit([request])
    assert_equals_reference(transformer, request, run_until_idle(session)[0].hypotheses)


def test_in_float32_a_crowd_changes_a_sentence_only_at_ties() -> None:
    transformer = small_transformer(dtype=torch.float32)
    num_ties = 0
    for request, hypotheses in run_in_a_crowd(transformer, random.Random(11), 4 * CROWD):
        alone = run_alone(transformer, request)
        if [h.token_ids for h in hypotheses] != [h.token_ids for h in alone]:
            num_ties += 1
            assert [h.score for h in hypotheses] == pytest.approx(
                [h.score for h in alone], abs=1e-4
            )
    assert num_ties <= 2


@pytest.mark.parametrize("num_spare", [64, 2], ids=["at the end", "as soon as there is room"])
def test_columns_move_to_the_front_without_a_trace(
    monkeypatch: pytest.MonkeyPatch, num_spare: int
) -> None:
    monkeypatch.setattr(cache, "_SPARE_COLUMNS", num_spare)
    transformer = small_transformer(eos_bias=-20.0)
    search = SearchConfig(beam_size=2, max_length=20)
    rng = random.Random(3)
    session = DecodingSession(transformer, tokens=TOKENS, limits=LIMITS)
    running: dict[int, DecodeRequest] = {}
    for step in range(150):  # three times the columns there are
        if step % 7 == 0 and session.free_slots:
            request = random_request(rng, search)
            running[session.admit([request])[0]] = request
        for finished in session.step():
            request = running.pop(finished.slot_id)
            assert_equals_reference(transformer, request, finished.hypotheses)


def test_a_released_sentence_is_gone_before_the_next_step() -> None:
    session = DecodingSession(small_transformer(), tokens=TOKENS, limits=LIMITS)
    rng = random.Random(5)
    search = SearchConfig(beam_size=3, max_length=16)
    first, second = session.admit([random_request(rng, search), random_request(rng, search)])
    session.step()
    session.release(first)
    assert (session.num_slots, session.num_rows) == (1, 3)
    assert [finished.slot_id for finished in run_until_idle(session)] == [second]
    session.release(second)
    assert session.is_idle
    assert (session.free_slots, session.free_rows) == (LIMITS.max_slots, LIMITS.max_rows)


@pytest.mark.parametrize(
    ("source_length", "beam_size", "max_length", "message"),
    [
        (17, 1, 8, "a source has 17 tokens; it may have 1 to 16"),
        (0, 1, 8, "a source has 0 tokens; it may have 1 to 16"),
        (4, 25, 8, "1 sentences with 25 rows do not fit into 6 free slots and 24 free rows"),
        (4, 1, 24, "need 25 target tokens; the session has 24"),
    ],
)
def test_what_does_not_fit_is_refused_whole(
    source_length: int, beam_size: int, max_length: int, message: str
) -> None:
    session = DecodingSession(small_transformer(), tokens=TOKENS, limits=LIMITS)
    request = DecodeRequest(
        source_ids=(5,) * source_length,
        prefix_ids=(0,),
        search=SearchConfig(beam_size=beam_size, max_length=max_length),
    )
    with pytest.raises(CapacityError, match=message):
        session.admit([request])
    assert session.is_idle


def test_a_failing_encoder_leaves_no_sentence_behind() -> None:
    session = DecodingSession(small_transformer(), tokens=TOKENS, limits=LIMITS)
    request = DecodeRequest(source_ids=(99, 1), prefix_ids=(0,), search=SearchConfig())
    with pytest.raises(CapacityError):
        session.admit([request])  # max_length 256 exceeds the session's
    outside = DecodeRequest(source_ids=(99, 1), prefix_ids=(0,), search=SearchConfig(max_length=8))
    with pytest.raises(IndexError):
        session.admit([outside])  # 99 is not in the vocabulary
    assert session.is_idle
    assert session.free_rows == LIMITS.max_rows


def test_a_sentence_without_finite_scores_fails_alone() -> None:
    transformer = small_transformer(share_embeddings=False, tie_output=False)
    poison = 7
    with torch.no_grad():
        transformer.source_embedding.weight[poison] = float("nan")
    search = SearchConfig(beam_size=2, max_length=8)
    healthy = DecodeRequest(source_ids=(4, 5, 1), prefix_ids=(0,), search=search)
    poisoned = DecodeRequest(source_ids=(4, poison, 1), prefix_ids=(0,), search=search)
    session = DecodingSession(transformer, tokens=TOKENS, limits=LIMITS)
    first, second = session.admit([poisoned, healthy])
    finished = {done.slot_id: done.hypotheses for done in run_until_idle(session)}
    assert finished[first] == ()
    assert_equals_reference(transformer, healthy, finished[second])
    session.admit([healthy])  # in the rows that the poisoned one has left
    assert_equals_reference(transformer, healthy, run_until_idle(session)[0].hypotheses)


POISON = 22
"""A source token whose numbers are not finite."""

LEAVING = SearchConfig(beam_size=2, max_length=14)
HEALTHY, LONG = (
    DecodeRequest(source_ids=ids, prefix_ids=(0,), search=LEAVING, suppressed_ids=(POISON,))
    for ids in ((5, 6, 7, 1), (*range(4, 15), 1))
)
POISONED = DecodeRequest(source_ids=(*[POISON] * 10, 1), prefix_ids=(0, 4, 5, 6), search=LEAVING)


def poisoned_session() -> tuple[DecodingSession, Transformer]:
    transformer = small_transformer(share_embeddings=False, tie_output=False)
    with torch.no_grad():
        transformer.source_embedding.weight[POISON] = torch.nan
    return DecodingSession(transformer, tokens=TOKENS, limits=LIMITS), transformer


@pytest.mark.parametrize("num_steps", [0, 1, 2])
def test_what_is_released_before_its_numbers_are_known_leaves_nothing_behind(
    num_steps: int,
) -> None:
    session, transformer = poisoned_session()
    session.admit([LONG])
    for _ in range(3):
        session.step()
    (poisoned,) = session.admit([POISONED])
    for _ in range(num_steps):
        session.step()
    session.release(poisoned)
    (name,) = session.admit([HEALTHY])
    finished = {done.slot_id: done.hypotheses for done in run_until_idle(session)}
    assert_equals_reference(transformer, HEALTHY, finished[name])


def test_what_moves_before_its_numbers_are_known_leaves_nothing_behind() -> None:
    session, transformer = poisoned_session()
    (first,) = session.admit([HEALTHY])
    session.admit([POISONED])
    session.step()
    session.release(first)
    assert [done.hypotheses for done in run_until_idle(session)] == [()]
    session.admit([LONG])
    (name,) = session.admit([HEALTHY])  # where the poisoned one was before it moved
    finished = {done.slot_id: done.hypotheses for done in run_until_idle(session)}
    assert_equals_reference(transformer, HEALTHY, finished[name])


def test_what_turns_nan_after_its_first_hypothesis_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cleared: list[int] = []

    def clear(_: CachedNetwork, slot: Slot, num_past: int) -> None:
        assert num_past > 0
        cleared.append(slot.slot_id)

    monkeypatch.setattr(CachedNetwork, "clear", clear)
    transformer = small_transformer(eos_bias=1.0)
    rng = random.Random(250)  # of others most end with their first hypothesis
    finished: list[FinishedSentence] = []
    while not finished:
        backend = EagerBackend(transformer, tokens=TOKENS, limits=LIMITS)
        search = SearchConfig(beam_size=4, max_length=20)
        backend.admit([7], [random_request(rng, search)])
        (slot,) = backend._table._by_id.values()
        while not finished and not slot.finished:
            finished = backend.step()
        if finished:  # it ended with its first hypothesis
            finished.clear()
            cleared.clear()
            continue
        for table in backend._network._cache.growing:
            table[:, slot.rows, :, backend._network._cache.column] = torch.nan
        finished = backend.step()
    assert [sentence.slot_id for sentence in finished] == cleared == [7]
    assert finished[0].hypotheses


def test_n_best_are_the_n_best_and_in_order() -> None:
    transformer = small_transformer()
    rng = random.Random(2)
    for _ in range(20):
        request = random_request(rng, SearchConfig(beam_size=5, num_hypotheses=5, max_length=12))
        scores = [h.score for h in run_alone(transformer, request)]
        assert scores == sorted(scores, reverse=True)
        assert 1 <= len(scores) <= 5


def test_scores_are_the_sum_of_token_scores_over_the_length() -> None:
    transformer = small_transformer()
    rng = random.Random(4)
    for _ in range(30):
        request = random_request(rng)
        for h in run_alone(transformer, request):
            length = len(h.token_log_probs)
            assert length == len(h.token_ids) + 1
            penalty = request.search.length_penalty
            assert h.score == pytest.approx(sum(h.token_log_probs) / length**penalty, abs=1e-9)


def test_alignment_follows_the_cross_attention_of_the_last_layer() -> None:
    """Of every hypothesis: those that end behind the best have been copied from row to row."""
    transformer = small_transformer()
    rng = random.Random(6)
    for _ in range(10):
        search = SearchConfig(beam_size=4, num_hypotheses=4, max_length=10, with_alignment=True)
        request = random_request(rng, search)
        for found in run_alone(transformer, request):
            target = torch.tensor([[*request.prefix_ids, *found.token_ids]])
            maps = transformer.attention_maps(torch.tensor([request.source_ids]), target)
            looked = maps.cross[-1][0].mean(dim=0)  # (T, S)
            start = len(request.prefix_ids) - 1
            expected = looked[start : start + len(found.token_ids)].argmax(dim=-1)
            assert found.alignment == tuple(expected.tolist())


def test_the_exact_rule_finds_what_never_stopping_finds() -> None:
    transformer = small_transformer(eos_bias=2.0)
    rng = random.Random(8)
    for _ in range(40):
        source = random_request(rng, random_search(rng)).source_ids
        best = []
        for rule in ("exact", "bound"):
            search = SearchConfig(beam_size=4, max_length=12, stopping=rule)
            request = DecodeRequest(source_ids=source, prefix_ids=(0,), search=search)
            best.append(run_alone(transformer, request)[0].token_ids)
        assert best[0] == best[1]


def test_what_is_encoded_is_every_batch_as_wide_as_its_longest_source() -> None:
    session = DecodingSession(small_transformer(), tokens=TOKENS, limits=LIMITS)
    assert session.num_encoded_tokens == 0
    search = SearchConfig(max_length=2)
    sources = [(5,) * 4, (6,) * 9, (7,) * 6]
    requests = [DecodeRequest(source_ids=ids, prefix_ids=(0,), search=search) for ids in sources]
    session.admit(requests)
    assert session.num_encoded_tokens == 3 * 9
    session.admit([requests[0]])
    assert session.num_encoded_tokens == 3 * 9 + 4


def test_what_just_fits_is_admitted() -> None:
    session = DecodingSession(small_transformer(), tokens=TOKENS, limits=LIMITS)

    def request(length: int, prefix: int, beam_size: int, max_length: int) -> DecodeRequest:
        search = SearchConfig(beam_size=beam_size, max_length=max_length)
        return DecodeRequest(source_ids=(5,) * length, prefix_ids=(0,) * prefix, search=search)

    longest = request(16, 3, 19, 21)
    shortest = [request(1, 1, 1, 1)] * 5
    slot_ids = session.admit([longest, *shortest])
    assert (session.free_slots, session.free_rows) == (0, 0)
    with pytest.raises(CapacityError, match="1 sentences with 1 rows do not fit into 0 free slots"):
        session.admit(shortest[:1])
    assert session.admit([]) == []
    session.release(slot_ids[1])
    (later,) = session.admit(shortest[:1])
    assert later not in slot_ids
    for slot_id in slot_ids[2:]:
        session.release(slot_id)
    with pytest.raises(CapacityError, match=r"1 sentences with 5 rows do not fit .* 4 free rows"):
        session.admit([request(1, 1, 5, 1)])
    (last,) = session.admit([request(1, 1, 4, 1)])
    assert len({*slot_ids, later, last}) == 8
    assert (session.num_rows, session.free_rows) == (24, 0)


@pytest.mark.parametrize(("prefix", "max_length"), [(0, 8), (4, 21), (1, 24)])
def test_a_target_with_its_prefix_must_fit_and_there_must_be_a_prefix(
    prefix: int, max_length: int
) -> None:
    session = DecodingSession(small_transformer(), tokens=TOKENS, limits=LIMITS)
    search = SearchConfig(beam_size=1, max_length=max_length)
    request = DecodeRequest(source_ids=(5, 1), prefix_ids=(0,) * prefix, search=search)
    with pytest.raises(CapacityError, match=f"a prefix of {prefix} and max_length {max_length} "):
        session.admit([request])
