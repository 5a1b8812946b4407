"""The same session on a CUDA device: `make test-gpu`."""

import random

import pytest
import torch

from support.reference_search import reference_search
from support.search_cases import TOKENS, run_in_a_crowd, small_transformer

pytestmark = pytest.mark.gpu


def test_in_float64_the_device_gives_what_the_plain_search_gives() -> None:
    transformer = small_transformer().cuda()
    oracle = small_transformer()
    for request, hypotheses in run_in_a_crowd(transformer, random.Random(13), 60):
        expected = reference_search(
            oracle, TOKENS, list(request.source_ids), list(request.prefix_ids), request.search
        )
        assert [list(h.token_ids) for h in hypotheses] == [e.tokens for e in expected]
        assert [h.score for h in hypotheses] == pytest.approx([e.score for e in expected], abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precisions_finish_with_finite_scores(dtype: torch.dtype) -> None:
    transformer = small_transformer(dtype=dtype).cuda()
    for _, hypotheses in run_in_a_crowd(transformer, random.Random(13), 40):
        assert all(torch.isfinite(torch.tensor(h.token_log_probs)).all() for h in hypotheses)
