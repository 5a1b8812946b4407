"""The count of a step's launches, by operators of torch and by kernels."""

import pytest
import torch

from benchmarks.launches import CountedOperators, CountingLauncher, counted_step, narrow_base


def test_views_and_reservations_launch_nothing() -> None:
    with CountedOperators() as operators:
        x = torch.empty(4, 4)
        x.view(16)[2:].unsqueeze(0)
        x.transpose(0, 1).expand(2, 4, 4)
        x.zero_()
        x + 1
    assert operators.counts == {"aten.zero_": 1, "aten.add": 1}


@torch.inference_mode()
def test_kernels_bring_a_step_of_few_rows_below_sixty_launches() -> None:
    pytest.importorskip("triton", reason="Triton is not installed: pip install 'dragoman[kernels]'")
    by_torch, by_kernels = (
        sum(counted_step(narrow_base(), num_sentences=2, beam_size=4, launcher=launcher).values())
        for launcher in (None, CountingLauncher())
    )
    assert by_torch > 200
    assert by_kernels <= 60
