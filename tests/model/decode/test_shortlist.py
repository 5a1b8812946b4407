"""Lists of tokens in PyTorch: masks over whole rows, the plain search over each list alone."""

import random
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from model.decode.backends.base import Backend
from model.decode.backends.eager.backend import EagerBackend
from model.decode.backends.opening import open_backend
from model.decode.backends.plain.backend import PlainBackend
from model.decode.constraints import outside_mask, restrict
from model.errors import UnsupportedVariantError
from support.reference_search import of_transformer
from support.search_cases import LIMITS, TOKENS, run_in_a_crowd, small_transformer
from support.shortlists import check_searches, random_shortlist

SHORTLIST = random_shortlist(23, 23, num_best=3)


@pytest.mark.parametrize("backend", [EagerBackend, PlainBackend])
def test_the_search_is_the_plain_search_over_the_list_alone(
    backend: Callable[..., Backend],
) -> None:
    transformer = small_transformer()
    opener = partial(backend, shortlist=SHORTLIST)
    crowd = run_in_a_crowd(transformer, random.Random(7), 15, opener=opener, has_suppressed=True)
    next_log_probs = of_transformer(transformer)
    check_searches(crowd, next_log_probs, SHORTLIST, TOKENS, tolerance=1e-10)


def test_a_row_has_its_own_list_and_its_probabilities_sum_to_one() -> None:
    outside = outside_mask([torch.tensor([0, 2]).numpy(), torch.tensor([1]).numpy()], vocab_size=3)
    assert outside.tolist() == [[False, True, False], [True, False, True]]
    logits = torch.tensor([[1.0, 9.0, 1.0], [0.0, 1.0, 2.0]])
    found = restrict(logits, outside).softmax(dim=-1)
    assert found.tolist() == [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]
    assert restrict(logits, None) is logits


def test_a_gpu_says_that_it_has_none() -> None:
    weight = SimpleNamespace(device=torch.device("cuda"))
    network = SimpleNamespace(
        config=small_transformer().config, target_embedding=SimpleNamespace(weight=weight)
    )
    with pytest.raises(UnsupportedVariantError, match="a GPU does not decode with a lexical"):
        open_backend(network, tokens=TOKENS, limits=LIMITS, shortlist=SHORTLIST)  # type: ignore[arg-type]
