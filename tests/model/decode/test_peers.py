"""Faults known from other engines, one test each, named as their trackers name them."""

import pytest
import torch

from model.config import SearchConfig
from model.decode.session import DecodeRequest, DecodingSession, Hypothesis
from model.nn.transformer import Transformer
from support.reference_search import reference_search
from support.search_cases import LIMITS, TOKENS, small_transformer

LONG = (5, 9, 12, 7, 7, 20, 3, 14, 15, 6, 11, 1)
SHORT = (4, 8, 1)


def translate(
    transformer: Transformer, *requests: DecodeRequest
) -> tuple[list[tuple[Hypothesis, ...]], list[int]]:
    """Hypotheses of requests admitted together, and the steps each took."""
    session = DecodingSession(transformer, tokens=TOKENS, limits=LIMITS)
    slots = session.admit(requests)
    done: dict[int, tuple[tuple[Hypothesis, ...], int]] = {}
    num_steps = 0
    while not session.is_idle:
        num_steps += 1
        for finished in session.step():
            done[finished.slot_id] = finished.hypotheses, num_steps
    return [done[slot][0] for slot in slots], [done[slot][1] for slot in slots]


def request(
    source: tuple[int, ...], prefix: tuple[int, ...] = (0,), **search: object
) -> DecodeRequest:
    return DecodeRequest(source_ids=source, prefix_ids=prefix, search=SearchConfig(**search))  # type: ignore[arg-type]


def test_a_finished_sentence_does_not_wait_for_the_batch() -> None:
    """transformers#38778: the loop ran until every sentence of the batch was done."""
    transformer = small_transformer(eos_bias=1.0)
    early = request(SHORT, max_length=3)
    late = request(LONG, max_length=16, stopping="bound")
    (alone,), (steps_alone,) = translate(transformer, early)
    (beside, _), (steps_beside, steps_late) = translate(transformer, early, late)
    assert steps_beside == steps_alone < steps_late
    assert [h.token_ids for h in beside] == [h.token_ids for h in alone]


@pytest.mark.parametrize("prefix", [(0,), (0, 6, 7)])
def test_the_length_counts_the_end_of_sentence_but_neither_start_nor_prefix(
    prefix: tuple[int, ...],
) -> None:
    """transformers#8722, #20901: the prompt was counted, or EOS was not."""
    transformer = small_transformer(eos_bias=2.0)
    (found,), _ = translate(
        transformer, request(LONG, prefix, num_hypotheses=4, max_length=12, length_penalty=1.0)
    )
    for hypothesis in found:
        total = sum(hypothesis.token_log_probs)
        assert hypothesis.score == pytest.approx(total / (len(hypothesis.token_ids) + 1))


def test_a_sentence_is_translated_alike_beside_longer_and_shorter_ones() -> None:
    """CTranslate2#546, #1079; OpenNMT-py#137, #994, #2208: results depended on the batch."""
    transformer = small_transformer()
    sentence = request(SHORT, num_hypotheses=4, max_length=12)
    (alone,), _ = translate(transformer, sentence)
    beside, _ = translate(
        transformer, request(LONG, max_length=16), sentence, request((22, 1), max_length=2)
    )
    assert [h.token_ids for h in beside[1]] == [h.token_ids for h in alone]
    assert [h.score for h in beside[1]] == pytest.approx([h.score for h in alone], abs=1e-12)


def test_a_length_penalty_does_not_stop_the_search_early() -> None:
    """OpenNMT-py#1320: with a penalty a longer, better hypothesis was no longer waited for."""
    num_found = 0
    for eos_bias in (4.0, 5.0, 6.0):
        transformer = small_transformer(eos_bias=eos_bias)
        for word in range(3, 15):
            scores = []
            for rule in ("exact", "first"):
                (found,), _ = translate(
                    transformer,
                    request((word, word, 1), length_penalty=2.0, max_length=14, stopping=rule),
                )
                scores.append(found[0].score)
            assert scores[0] >= scores[1] - 1e-12
            num_found += scores[0] > scores[1] + 1e-6
    assert num_found > 0


def test_a_forced_prefix_is_followed_by_a_free_choice() -> None:
    """CTranslate2#277: EOS came right after a forced prefix, or the prefix ended the search."""
    transformer = small_transformer(eos_bias=0.0)
    prefix = (0, 9, 1, 14)  # even with EOS inside: M2M100 starts with EOS
    search = SearchConfig(beam_size=4, num_hypotheses=4, max_length=10)
    (found,), _ = translate(
        transformer, DecodeRequest(source_ids=LONG, prefix_ids=prefix, search=search)
    )
    expected = reference_search(transformer, TOKENS, list(LONG), list(prefix), search)
    assert [list(h.token_ids) for h in found] == [e.tokens for e in expected]


def test_one_long_source_does_not_raise_the_cap_of_its_neighbours() -> None:
    """Marian: the longest source of a batch set the maximum length for all."""
    transformer = small_transformer(eos_bias=-30.0)
    found, steps = translate(
        transformer, request(SHORT, max_length=4), request(LONG, max_length=16)
    )
    assert [len(h[0].token_log_probs) for h in found] == [4, 16]
    assert steps == [4, 16]
    assert all(hypotheses[0].is_truncated for hypotheses in found)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_scores_are_summed_in_single_precision(dtype: torch.dtype) -> None:
    """CTranslate2: sums of log probabilities lost their last digits in half precision."""
    transformer = small_transformer(dtype=dtype, eos_bias=-30.0)
    (found,), _ = translate(transformer, request(LONG, max_length=16, length_penalty=0.0))
    best = found[0]
    assert best.score == pytest.approx(sum(best.token_log_probs), abs=1e-4)
    as_half = torch.tensor(best.score).to(dtype).item()
    assert best.score != as_half
