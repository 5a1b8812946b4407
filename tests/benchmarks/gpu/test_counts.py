"""Counts that need no GPU: launches of a step, and that the host's work is all of a round's."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from benchmarks.gpu import host, launches


def test_views_and_reservations_launch_nothing_and_an_attention_one_kernel() -> None:
    with launches.CountedOperators() as operators, launches._Attentions(operators):
        x = torch.empty(4, 4)
        x.view(16)[2:].unsqueeze(0)
        x.transpose(0, 1).expand(2, 4, 4)
        x.zero_()
        x + 1
        F.scaled_dot_product_attention(*[torch.zeros(1, 1, 4, 4)] * 3)
    assert operators.counts == {"zero_": 1, "add": 1, "zeros": 1, "attention": 1}


def test_a_step_has_as_many_operations_however_many_sentences_it_is_for() -> None:
    found = [launches.count(num_sentences) for num_sentences in (1, 3)]
    assert found[0] == found[1]
    assert found[0]["attention"] == 2 * launches.NUM_LAYERS
    assert found[0]["arange"] == 0
    assert 200 < found[0].total() <= 220


def test_kernels_are_a_quarter_of_the_launches_with_few_rows_and_a_third_with_many() -> None:
    pytest.importorskip("triton", reason="Triton is not installed: pip install 'dragoman[kernels]'")
    for num_sentences, most in ((2, 54), (32, 71)):
        found = launches.count(num_sentences, launcher=launches.CountingLauncher())
        assert found["kernels.search"] == 1
        assert found.total() <= most


def test_a_prepared_round_ends_with_every_sentence_and_begins_again() -> None:
    grid, sentences = host.open_grid(7), host.requests(7)
    with torch.inference_mode():
        for _ in range(2):
            seconds = host.one_round(grid, sentences, host.reports(7))
            assert seconds.keys() == {"admit", "launch", "collect"}
    grid.check_integrity()
