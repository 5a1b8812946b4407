"""One beam step against the same step in plain Python."""

import math
import random

import pytest
import torch
from torch import Tensor

from model.decode.beam_search import (
    Candidates,
    RowContinuations,
    RowGroups,
    best_candidates,
    decide,
    force,
    row_continuations,
    wide_topk,
)

EOS = 1


def groups_of(rows: list[list[int]], candidates: list[int]) -> RowGroups:
    width = max(map(len, rows))
    position = torch.zeros(sum(map(len, rows)), dtype=torch.int64)
    for sentence, own in enumerate(rows):
        for index, row in enumerate(own):
            position[row] = sentence * width + index
    return RowGroups(
        rows=torch.tensor([[*own, *[0] * (width - len(own))] for own in rows]),
        live=torch.tensor([[index < len(own) for index in range(width)] for own in rows]),
        position=position,
        widths=torch.tensor([len(own) for own in rows]),
        num_candidates=torch.tensor(candidates),
        max_candidates=max(candidates),
    )


def random_rows(rng: random.Random) -> list[list[int]]:
    widths = [rng.randint(1, 5) for _ in range(rng.randint(1, 4))]
    order = list(range(sum(widths)))
    rng.shuffle(order)
    return [[order.pop() for _ in range(width)] for width in widths]


def plain_candidates(
    scores: list[float], log_probs: Tensor, own: list[int], num: int
) -> list[tuple[float, int, int]]:
    every = [
        (scores[row] + log_probs[row, token].item(), index, token)
        for index, row in enumerate(own)
        for token in range(log_probs.shape[1])
    ]
    return sorted(every, key=lambda candidate: -candidate[0])[:num]


@pytest.mark.parametrize("seed", range(25))
def test_a_step_chooses_what_sorting_everything_chooses(seed: int) -> None:
    rng = random.Random(seed)
    torch.manual_seed(seed)
    rows = random_rows(rng)
    groups = groups_of(rows, [2 * len(own) for own in rows])
    num_rows = sum(map(len, rows))
    logits = torch.randn(num_rows, 12, dtype=torch.float64)
    logits[:, EOS] += rng.choice([-3.0, 0.0, 3.0])
    log_probs = logits.log_softmax(dim=-1)
    scores = -5.0 * torch.rand(num_rows, dtype=torch.float64)
    for own in rows:
        if rng.random() < 0.3 and len(own) > 1:
            scores[own[-1]] = -math.inf

    continuations = row_continuations(logits.clone(), groups.max_candidates, None)
    decision = decide(best_candidates(scores, continuations, groups), groups, eos_id=EOS)

    for sentence, own in enumerate(rows):
        width = len(own)
        ranked = plain_candidates(scores.tolist(), log_probs, own, 2 * width)
        ends = [
            rank < width and token == EOS and total > -math.inf
            for rank, (total, _, token) in enumerate(ranked)
        ]
        assert decision.ends[sentence, : len(ranked)].tolist() == ends
        running = [c for c in ranked if c[2] != EOS and c[0] > -math.inf][:width]
        got = sorted(
            (-decision.scores[row].item(), int(decision.parents[row]), int(decision.tokens[row]))
            for row in own
            if decision.scores[row] > -math.inf
        )
        expected = sorted((-total, own[beam], token) for total, beam, token in running)
        assert [g[1:] for g in got] == [e[1:] for e in expected]
        assert [g[0] for g in got] == pytest.approx([e[0] for e in expected])


@pytest.mark.parametrize("seed", range(25))
def test_only_second_children_are_copied_and_never_over_a_source(seed: int) -> None:
    rng = random.Random(seed)
    rows = random_rows(rng)
    groups = groups_of(rows, [2 * len(own) for own in rows])
    width = groups.rows.shape[1]
    num = 2 * width
    beams = torch.tensor([[rng.randrange(len(own)) for _ in range(num)] for own in rows])
    scores = torch.arange(num, 0, -1, dtype=torch.float64).neg().flip(0).expand(len(rows), num)
    candidates = Candidates(
        scores=scores, log_probs=scores, beams=beams, tokens=torch.full_like(beams, 5)
    )
    decision = decide(candidates, groups, eos_id=EOS)
    copied = decision.is_copy.nonzero().flatten().tolist()
    sources = {decision.parents[row].item() for row in copied}
    assert sources.isdisjoint(copied)
    for sentence, own in enumerate(rows):
        parents = beams[sentence, : len(own)].tolist()
        assert sum(row in copied for row in own) == len(parents) - len(set(parents))
        assert sorted(own[parent] for parent in parents) == sorted(
            decision.parents[row].item() for row in own
        )


def test_suppressed_tokens_are_not_chosen_and_their_mass_is_not_given_away() -> None:
    logits = torch.tensor([[3.0, 2.0, 1.0]])
    expected = logits.log_softmax(dim=-1)[0, 1]
    continuations = row_continuations(logits, 2, torch.tensor([0]))
    assert continuations.tokens[0].tolist() == [1, 2]
    assert continuations.log_probs[0, 0].item() == pytest.approx(expected.item())


def test_a_forced_token_is_the_only_one_and_costs_nothing() -> None:
    continuations = RowContinuations(
        log_probs=torch.tensor([[-1.0, -2.0]] * 4), tokens=torch.tensor([[4, 5]] * 4)
    )
    continuations = force(continuations, torch.tensor([-1, EOS, 0, 5]))
    assert continuations.log_probs.tolist() == [[-1.0, -2.0], *[[0.0, -math.inf]] * 3]
    assert continuations.tokens[:, 0].tolist() == [4, EOS, 0, 5]
    assert continuations.tokens[0].tolist() == [4, 5]


def step_of_one(
    tokens: list[int], scores: list[float], *, width: int = 2, is_endless: bool = False
) -> tuple[list[bool], list[int]]:
    """Which candidates of one sentence end, and the tokens that its rows go on with."""
    values = torch.tensor([scores])
    candidates = Candidates(
        scores=values,
        log_probs=values,
        beams=torch.tensor([[index % width for index in range(len(tokens))]]),
        tokens=torch.tensor([tokens]),
    )
    groups = groups_of([list(range(width))], [2 * width])
    endless = torch.tensor([is_endless]) if is_endless else None
    decision = decide(candidates, groups, eos_id=EOS, endless=endless)
    live = (decision.scores > -math.inf).tolist()
    rows = zip(decision.tokens.tolist(), live, strict=True)
    return decision.ends[0].tolist(), sorted(token for token, is_live in rows if is_live)


def test_an_end_counts_among_the_beams_best_and_is_dropped_behind_them() -> None:
    scores = [-1.0, -2.0, -3.0, -4.0]
    assert step_of_one([EOS, 5, 6, 7], scores) == ([True, False, False, False], [5, 6])
    assert step_of_one([5, EOS, 6, 7], scores) == ([False, True, False, False], [5, 6])
    assert step_of_one([5, 6, EOS, 7], scores) == ([False] * 4, [5, 6])
    assert step_of_one([EOS, EOS, 5, 6], scores) == ([True, True, False, False], [5, 6])
    assert step_of_one([EOS, 5, EOS, 6], scores) == ([True, False, False, False], [5, 6])


def test_what_is_impossible_neither_ends_nor_goes_on() -> None:
    assert step_of_one([EOS] * 4, [-math.inf] * 4) == ([False] * 4, [])
    assert step_of_one([5] * 4, [-math.inf] * 4) == ([False] * 4, [])
    scores = [-1.0, -math.inf, -math.inf, -math.inf]
    assert step_of_one([EOS, EOS, 5, 6], scores) == ([True, False, False, False], [])
    assert step_of_one([5, EOS, 6, 7], scores) == ([False] * 4, [5])


def test_while_a_prefix_is_fed_its_end_token_is_a_token_like_any_other() -> None:
    scores = [-1.0, -2.0, -3.0, -4.0]
    assert step_of_one([EOS, 5, 6, 7], scores, is_endless=True) == ([False] * 4, [EOS, 5])


def test_a_sentence_considers_as_many_continuations_as_it_has_of_its_own() -> None:
    # Beside a wide sentence there are more candidates, which a narrow one leaves alone.
    groups = groups_of([[0], [1, 2, 3]], [2, 6])
    tokens = torch.tensor([[EOS, EOS, 5, 6, 7, 8]] * 2)
    scores = torch.tensor([[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]] * 2)
    beams = torch.tensor([[0] * 6, [0, 1, 2, 0, 1, 2]])
    decision = decide(
        Candidates(scores=scores, log_probs=scores, beams=beams, tokens=tokens), groups, eos_id=EOS
    )
    assert decision.ends.tolist() == [[True, *[False] * 5], [True, True, *[False] * 4]]
    assert decision.best.tolist() == [[-math.inf], [-3.0]]
    assert decision.scores[0] == -math.inf
    assert sorted(decision.tokens[1:].tolist()) == [5, 6, 7]


@pytest.mark.parametrize("length", [10, 500, 1000, 1024, 58_101])
@pytest.mark.parametrize("num", [1, 8])
def test_the_best_of_long_rows_are_found_by_their_chunks(length: int, num: int) -> None:
    torch.manual_seed(length)
    values = torch.randn(5, length, dtype=torch.float64)
    values[0, -1] = 9.0  # past the last whole chunk
    values[1] = -math.inf
    best, places = wide_topk(values, num)
    assert torch.equal(best, values.topk(num, dim=-1).values)
    assert torch.equal(values.gather(1, places), best)
    assert all(len(set(row.tolist())) == num for row in places)


def test_rows_shorter_than_what_is_asked_for_give_all_they_have() -> None:
    continuations = row_continuations(torch.tensor([[1.0, 3.0, 2.0]]), 8, None)
    assert continuations.tokens.tolist() == [[1, 2, 0]]


def test_rows_of_a_large_vocabulary_are_taken_in_turns_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logits, suppressed = torch.randn(7, 300), torch.tensor([3, 5])
    mask = torch.rand(7, 300) < 0.3
    for row_mask in (None, mask):
        whole = row_continuations(logits, 6, suppressed, row_mask)
        for at_once in (1, 900, 301):  # three rows, one
            monkeypatch.setattr("model.decode.beam_search._MAX_AT_ONCE", at_once)
            in_turns = row_continuations(logits, 6, suppressed, row_mask)
            assert torch.equal(in_turns.log_probs, whole.log_probs)
            assert torch.equal(in_turns.tokens, whole.tokens)
        monkeypatch.undo()
