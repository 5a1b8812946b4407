"""The end of a sentence touches no more of the caches than it has used."""

import pytest
import torch
from torch import Tensor

from model.config import SearchConfig
from model.decode.backends.eager.backend import EagerBackend
from model.decode.backends.eager.cached import CachedNetwork
from model.request import DecodeRequest, FinishedSentence
from support.search_cases import LIMITS, TOKENS, small_transformer

MARK = 7.0
"""What the tables hold where nobody has written."""

CAPPED = DecodeRequest(
    source_ids=(4, 5, 1), prefix_ids=(0,), search=SearchConfig(beam_size=3, max_length=4)
)


def marked(backend: EagerBackend) -> list[Tensor]:
    cache, cross = backend._network._cache, backend._network._cross_cache
    tables = [*cache.growing, cross.keys, cross.values]
    for table in tables:
        table.fill_(MARK)
    return tables


def run(backend: EagerBackend) -> FinishedSentence:
    finished: list[FinishedSentence] = []
    while not finished:
        finished = backend.step()
    (sentence,) = finished
    return sentence


def test_a_sentence_that_reaches_its_cap_has_nothing_cleared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(CachedNetwork, "clear")
    backend = EagerBackend(small_transformer(eos_bias=-50.0), tokens=TOKENS, limits=LIMITS)
    *growing, keys, values = marked(backend)
    backend.admit([0], [CAPPED])
    assert run(backend).hypotheses[0].is_truncated
    for table in growing:
        assert (table[:, :, :, 4:] == MARK).all()
        assert table[:, :3, :, :4].any()
    for table in (keys, values):
        assert (table[:, :, :, 3:] == MARK).all()
        assert (table[:, 0, :, :3] != MARK).any()


def test_a_sentence_without_finite_numbers_has_what_it_wrote_cleared_and_no_more() -> None:
    transformer = small_transformer(share_embeddings=False, tie_output=False)
    with torch.no_grad():
        transformer.source_embedding.weight[5] = torch.nan
    backend = EagerBackend(transformer, tokens=TOKENS, limits=LIMITS)
    *growing, keys, values = marked(backend)
    backend.admit([0], [CAPPED])
    assert run(backend).hypotheses == ()
    for table in (*growing, keys, values):
        assert table.isfinite().all()
        assert not table[:, 0, :, 0].any()
        assert (table[:, :, :, 4:] == MARK).all()
