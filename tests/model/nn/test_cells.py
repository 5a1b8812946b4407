"""The plain decoder with another cell than self-attention."""

import torch

from support.gated_average import with_gated_average


def test_the_weights_of_a_cell_and_its_norm_stand_under_its_name() -> None:
    layer = with_gated_average().decoder.layers[0]
    names = {name.split(".")[0] for name in layer.state_dict()}
    assert names == {
        "gated_average",
        "gated_average_norm",
        "cross_attention",
        "cross_attention_norm",
        "feed_forward",
        "feed_forward_norm",
    }
    assert layer.cell is layer.gated_average
    assert layer.cell_norm is layer.gated_average_norm


def test_a_network_runs_and_learns_through_its_cell_and_sees_no_future() -> None:
    transformer = with_gated_average()
    source, target = torch.tensor([[5, 6, 1]]), torch.tensor([[0, 7, 8, 9]])
    logits = transformer(source, target)
    logits.sum().backward()
    for layer in transformer.decoder.layers:
        for parameter in layer.cell.parameters():
            assert parameter.grad is not None
            assert parameter.grad.any()
    changed = transformer(source, torch.tensor([[0, 7, 3, 9]]))
    assert torch.equal(changed[:, :2], logits[:, :2])
    assert not torch.allclose(changed[:, 2:], logits[:, 2:])
