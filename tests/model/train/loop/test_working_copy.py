"""Gradients that are computed in bfloat16 for weights in float32."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from model.nn.transformer import Transformer
from model.train.data.batching import Batch
from model.train.loop.objective import batch_loss, compiled_stacks, compute_context
from model.train.loop.working_copy import WorkingCopy, in_bfloat16
from support.training import VOCABULARY, cut, gradients, network, reversal_pairs

DEVICES = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


def low_loss(transformer: Transformer, copy: WorkingCopy, batch: Batch) -> Tensor:
    """The loss as a trainer computes it in bfloat16."""
    with compute_context(batch.labels.device, "bfloat16"):
        return batch_loss(transformer, batch, smoothing=0.1, stacks=in_bfloat16(copy.stacks))


@DEVICES
def test_gradients_are_close_to_those_of_the_weights_themselves(device: str) -> None:
    batch = cut(reversal_pairs(32), 32)[0].to(torch.device(device))
    plain, kept = network().to(device), network().to(device)
    expected_loss = batch_loss(plain, batch, smoothing=0.1)
    copy = WorkingCopy(kept)
    loss = low_loss(kept, copy, batch)
    for found_loss in (expected_loss, loss):
        found_loss.backward()  # type: ignore[no-untyped-call]  # torch's own
    copy.hand_over()
    torch.testing.assert_close(loss, expected_loss, rtol=1e-2, atol=0)
    expected, found = gradients(plain), gradients(kept)
    assert found.keys() == expected.keys()
    assert all(gradient.dtype == torch.float32 for gradient in found.values())
    whole = torch.cat([gradient.flatten() for gradient in expected.values()])
    gap = torch.cat([(found[name] - expected[name]).flatten() for name in expected])
    assert gap.norm() < 0.05 * whole.norm()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "rmsnorm", "norm_placement": "pre"},
        {"position": "relative", "norm_placement": "pre"},
        {"decoder_cell": "ssru", "embedding_norm": True},
    ],
)
def test_sums_over_thousands_of_tokens_keep_their_parts(changes: dict[str, Any]) -> None:
    """Every weight's gradient; a sum in bfloat16 stops growing before that."""
    torch.manual_seed(5)
    transformer = Transformer(replace(network().config, d_model=32, **changes))
    copy = WorkingCopy(transformer)
    ids, targets, labels = (torch.randint(3, VOCABULARY, (160, 32)) for _ in range(3))
    batch = Batch(
        source_ids=ids,
        target_ids=targets,
        labels=labels,
        num_source_tokens=ids.numel(),
        num_target_tokens=labels.numel(),
    )
    batch_loss(transformer, batch, smoothing=0.1).backward()  # type: ignore[no-untyped-call]  # torch's own
    expected = gradients(transformer)
    transformer.zero_grad(set_to_none=True)
    low_loss(transformer, copy, batch).backward()  # type: ignore[no-untyped-call]  # torch's own
    copy.hand_over()
    for name, gradient in gradients(transformer).items():
        if not name.endswith("k_proj.bias"):  # which changes no softmax: its gradient is noise
            gap = (gradient - expected[name]).norm() / expected[name].norm()
            assert gap < 0.05, name


def test_a_weight_that_has_no_part_in_the_loss_gets_no_gradient() -> None:
    (batch,) = cut(reversal_pairs(32), 32)
    config = replace(network().config, num_encoder_layers=0, position="relative")
    transformer = Transformer(config)
    copy = WorkingCopy(transformer)
    for _ in range(2):
        low_loss(transformer, copy, batch).backward()  # type: ignore[no-untyped-call]  # torch's own
        copy.hand_over()
    without = {name for name, one in transformer.named_parameters() if one.grad is None}
    assert without == {"encoder.position_bias.scores.weight"}


def test_batches_add_up_and_leave_nothing_behind() -> None:
    first, second = cut(reversal_pairs(32), 16)
    kept, once, twice = network(), [], []
    copy = WorkingCopy(kept)
    for batches, found in (([first], once), ([second], once), ([first, second], twice)):
        for parameter in kept.parameters():
            parameter.grad = None
        for batch in batches:
            low_loss(kept, copy, batch).backward()  # type: ignore[no-untyped-call]  # torch's own
            copy.hand_over()
        found.append(torch.cat([gradient.flatten() for gradient in gradients(kept).values()]))
    assert torch.equal(twice[0], once[0] + once[1])


def test_the_copy_follows_the_weights_which_stay_in_float32() -> None:
    (batch,) = cut(reversal_pairs(32), 32)
    kept = network()
    copy = WorkingCopy(kept)
    before = low_loss(kept, copy, batch)
    with torch.no_grad():
        for parameter in kept.encoder.parameters():
            parameter.mul_(1.5)
    assert torch.equal(low_loss(kept, copy, batch), before)
    copy.refresh()
    assert torch.equal(low_loss(kept, copy, batch), low_loss(kept, WorkingCopy(kept), batch))
    assert not torch.equal(low_loss(kept, copy, batch), before)
    assert {parameter.dtype for parameter in kept.parameters()} == {torch.float32}


def test_what_is_between_products_is_in_bfloat16_and_embeddings_are_not() -> None:
    """Autocast around it would take norms back to float32."""
    (batch,) = cut(reversal_pairs(32), 32)
    kept = network()
    copy = WorkingCopy(kept)
    dtypes = []

    def record(module: torch.nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        dtypes.append((type(module).__name__, inputs[0].dtype, output.dtype))

    handle = torch.nn.modules.module.register_module_forward_hook(record)
    try:
        low_loss(kept, copy, batch)
    finally:
        handle.remove()
    norms = {found[1:] for found in dtypes if found[0] == "LayerNorm"}
    assert norms == {(torch.bfloat16, torch.bfloat16)}
    assert ("TokenEmbedding", torch.int64, torch.float32) in dtypes


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # torch's own
def test_copies_can_be_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    (batch,) = cut(reversal_pairs(32), 32)
    kept = network()
    copy = WorkingCopy(kept)
    expected = low_loss(kept, copy, batch)
    monkeypatch.setattr("model.train.loop.objective.check_compiler", lambda _: None)
    copy.stacks = compiled_stacks(copy.stacks, torch.device("cpu"), backend="eager")
    torch.testing.assert_close(low_loss(kept, copy, batch), expected, rtol=1e-3, atol=0)
