"""Gradients that are computed in bfloat16 for weights in float32."""

import pytest
import torch

from model.train.loop.objective import batch_loss
from model.train.loop.working_copy import WorkingCopy
from support.training import cut, gradients, network, reversal_pairs


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_gradients_are_close_to_those_of_the_weights_themselves(device: str) -> None:
    (batch,) = cut(reversal_pairs(32), 32)
    plain, kept = network().to(device), network().to(device)
    batch_loss(plain, batch.to(torch.device(device)), smoothing=0.1).backward()
    copy = WorkingCopy(kept)
    batch_loss(copy.network, batch.to(torch.device(device)), smoothing=0.1).backward()
    copy.hand_over()
    expected, found = gradients(plain), gradients(kept)
    assert all(gradient.dtype == torch.float32 for gradient in found.values())
    whole = torch.cat([gradient.flatten() for gradient in expected.values()])
    gap = torch.cat([(found[name] - expected[name]).flatten() for name in expected])
    assert gap.norm() < 0.05 * whole.norm()


def test_batches_add_up_and_leave_nothing_behind() -> None:
    first, second = cut(reversal_pairs(32), 16)
    kept, once, twice = network(), [], []
    copy = WorkingCopy(kept)
    for batches, found in (([first], once), ([second], once), ([first, second], twice)):
        for parameter in kept.parameters():
            parameter.grad = None
        for batch in batches:
            batch_loss(copy.network, batch, smoothing=0.1).backward()
            copy.hand_over()
        assert all(parameter.grad is None for parameter in copy.network.parameters())
        found.append(torch.cat([gradient.flatten() for gradient in gradients(kept).values()]))
    assert torch.equal(twice[0], once[0] + once[1])


def test_the_copy_follows_the_weights_which_stay_in_float32() -> None:
    kept = network()
    copy = WorkingCopy(kept)
    with torch.no_grad():
        for parameter in kept.parameters():
            parameter.add_(1 / 1024)  # less than bfloat16 can add to 1
    copy.refresh()
    for name, parameter in kept.named_parameters():
        assert parameter.dtype == torch.float32
        assert torch.equal(copy.network.get_parameter(name), parameter.bfloat16())
