"""The programs between logits and report against the search in torch."""

import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

pytest.importorskip("triton", reason="Triton is not installed: pip install 'dragoman[kernels]'")

from model.config import SpecialTokens
from model.decode import beam_search
from model.decode.backends.cuda.buckets import Bucket
from model.decode.backends.cuda.kernels.choice_ops import ChoiceOps, Continuations
from model.decode.backends.cuda.kernels.launching import Launcher
from model.decode.backends.cuda.search import GridSearch, unpack
from model.decode.backends.cuda.tables import GridTables
from support.grid_tables import copied_tables, plain_bucket, searching_tables

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
SIZE = 2100
SUPPRESSED = [0, 1027]
EOS = 1


@pytest.fixture
def ops(launcher: Launcher) -> ChoiceOps:
    return ChoiceOps(launcher)


@pytest.fixture
def drawn(device: torch.device) -> Callable[..., Tensor]:
    generator = torch.Generator().manual_seed(5)

    def noise(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(device)

    return noise


def choosable(bias: Tensor) -> Tensor:
    return bias.index_fill(0, torch.tensor(SUPPRESSED, device=bias.device), float("-inf"))


def test_picks_are_the_best_log_probabilities_of_what_may_be_chosen(
    ops: ChoiceOps, drawn: Callable[..., Tensor]
) -> None:
    """Three blocks, the last one not full; columns behind the vocabulary; several of one chunk."""
    logits, bias = drawn(2, SIZE + 12) * 3, drawn(SIZE)
    logits[:, SUPPRESSED] = 20.0  # their probability mass stays theirs
    logits[:, 70:73] += 12.0
    found = ops.continuations(logits, bias, choosable(bias), 5)
    index = torch.tensor(SUPPRESSED, device=bias.device)
    expected = beam_search.row_continuations(logits[:, :SIZE] + bias, 5, index)
    assert torch.equal(found.tokens.long(), expected.tokens)
    torch.testing.assert_close(found.log_probs, expected.log_probs, atol=4e-6, rtol=1e-6)


def test_of_equal_logits_the_lower_token_comes_first(
    ops: ChoiceOps, drawn: Callable[..., Tensor]
) -> None:
    logits, bias = drawn(1, SIZE).clamp_(max=2.0), torch.zeros(SIZE, device=drawn(1).device)
    best = [3, 64, 65, 1500]
    logits[:, best] = 5.0
    found = ops.continuations(logits, bias, bias, 4)
    assert found.tokens.tolist() == [best]
    assert len(set(found.log_probs[0].tolist())) == 1


def test_a_row_with_a_nan_has_no_log_probability(
    ops: ChoiceOps, drawn: Callable[..., Tensor]
) -> None:
    logits, bias = drawn(2, SIZE), drawn(SIZE)
    logits[1, 1999] = float("nan")
    found = ops.continuations(logits, bias, bias, 2)
    assert found.log_probs.isnan().tolist() == [[False] * 2, [True] * 2]


def step_in_torch(
    monkeypatch: pytest.MonkeyPatch,
    found: Continuations,
    tables: GridTables,
    bucket: Bucket,
    sources: Tensor,
) -> Tensor:
    """The search in torch over the same continuations."""
    given = beam_search.RowContinuations(log_probs=found.log_probs, tokens=found.tokens.long())
    monkeypatch.setattr(beam_search, "row_continuations", lambda *_, **__: given)
    tokens = SpecialTokens(pad_id=0, eos_id=EOS, unk_id=2, start_id=0)
    search = GridSearch(tokens, vocab_size=8, device=tables.device)
    return search.step(tables, bucket, found.log_probs, sources)


@pytest.mark.parametrize("seed", range(4))
def test_a_search_writes_and_reports_what_the_search_in_torch_does(
    ops: ChoiceOps, monkeypatch: pytest.MonkeyPatch, device: torch.device, seed: int
) -> None:
    """Prefixes, forced tokens, caps, beams narrower than the grid, rows without hypothesis."""
    tables = searching_tables(random.Random(seed), device)
    generator = torch.Generator().manual_seed(seed)
    num_rows, num = tables.num_slots * tables.width, 6
    log_probs = torch.randn(num_rows, num, generator=generator).sort(descending=True).values - 3
    tokens = torch.stack([torch.randperm(8, generator=generator)[:num] for _ in range(num_rows)])
    found = Continuations(log_probs=log_probs.to(device), tokens=tokens.int().to(device))
    bucket = plain_bucket(
        num_slots=tables.num_slots,
        num_columns=tables.num_columns,
        source_length=16,
        num_candidates=9,
    )
    twin = copied_tables(tables)
    sources = torch.arange(num_rows, device=device).view(tables.num_slots, tables.width)
    packed = step_in_torch(monkeypatch, found, twin, bucket, sources)
    expected = unpack(packed.cpu().numpy(), tables.width)
    packed = ops.search(found, tables, bucket, sources=sources, eos_id=EOS)
    got = unpack(packed.cpu().numpy(), tables.width)
    is_on = (twin.scores > float("-inf")).cpu().numpy()
    assert is_on.any()
    assert not is_on.all()
    for name in ("tokens", "parents", "sources", "log_probs"):
        assert (getattr(got, name)[is_on] == getattr(expected, name)[is_on]).all(), name
    is_possible = expected.end_scores > float("-inf")
    for name in ("end_rows", "end_scores", "end_log_probs"):
        assert (getattr(got, name)[is_possible] == getattr(expected, name)[is_possible]).all(), name
    for name in ("best", "ends"):
        assert (getattr(got, name) == getattr(expected, name)).all(), name
    assert torch.equal(tables.scores, twin.scores)
    assert torch.equal(tables.positions, twin.positions)
    assert torch.equal(tables.tokens[is_on], twin.tokens[is_on])
    for slot, position in enumerate(tables.positions.tolist()):
        mine, theirs = (each.ancestors[slot, :, :position] for each in (tables, twin))
        assert torch.equal(mine[is_on[slot]], theirs[is_on[slot]])


def test_a_search_over_no_numbers_says_so_in_its_first_candidate(
    ops: ChoiceOps, device: torch.device
) -> None:
    tables = searching_tables(random.Random(1), device)
    log_probs = torch.full((tables.num_slots * tables.width, 2), -1.0, device=device)
    log_probs[0] = float("nan")
    tables.forced.fill_(-1)
    tables.max_lengths.fill_(30)
    found = Continuations(
        log_probs=log_probs, tokens=torch.full_like(log_probs, 5, dtype=torch.int32)
    )
    bucket = plain_bucket(
        num_slots=tables.num_slots,
        num_columns=tables.num_columns,
        source_length=16,
        num_candidates=2,
    )
    packed = ops.search(found, tables, bucket, sources=None, eos_id=EOS)
    scores = torch.from_numpy(unpack(packed.cpu().numpy(), tables.width).end_scores)
    assert scores.isnan()[:, 0].tolist() == [True, *[False] * (tables.num_slots - 1)]
