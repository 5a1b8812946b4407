import math

import pytest
import torch
from torch import Tensor

from model.train.data.batching import IGNORED
from model.train.loop.loss import label_smoothed_loss
from model.train.loop.paired_loss import paired_loss, projected_paired_loss


def by_hand(first: Tensor, second: Tensor, label: int, smoothing: float, alpha: float) -> float:
    """Half of equation 3 of the paper for one token, number by number."""
    num_pieces = first.numel()
    p, q = (
        [math.exp(z) / sum(math.exp(other) for other in row.tolist()) for z in row.tolist()]
        for row in (first, second)
    )
    target = [smoothing / num_pieces + (1 - smoothing) * (k == label) for k in range(num_pieces)]
    crosses = -sum(t * (math.log(a) + math.log(b)) for t, a, b in zip(target, p, q, strict=True))
    forth = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    back = sum(b * math.log(b / a) for a, b in zip(p, q, strict=True))
    return 0.5 * (crosses + alpha * 0.5 * (forth + back))


def test_the_loss_is_half_of_the_papers() -> None:
    torch.manual_seed(1)
    logits = torch.randn(2, 3, 7, dtype=torch.float64)
    labels = torch.tensor([2, 0, 6])
    expected = sum(
        by_hand(logits[0, row], logits[1, row], int(labels[row]), 0.1, 3.0) for row in range(3)
    )
    found = paired_loss(logits, labels, smoothing=0.1, alpha=3.0).item()
    assert found == pytest.approx(expected, abs=1e-12)


def test_two_passes_that_agree_have_the_loss_of_one() -> None:
    torch.manual_seed(2)
    logits, labels = torch.randn(5, 9, dtype=torch.float64), torch.tensor([0, 1, 2, 3, IGNORED])
    paired = paired_loss(torch.stack([logits, logits]), labels, smoothing=0.1, alpha=5.0)
    single = label_smoothed_loss(logits, labels, smoothing=0.1)
    torch.testing.assert_close(paired, single, rtol=0, atol=1e-12)


def test_padding_adds_nothing() -> None:
    torch.manual_seed(3)
    logits = torch.randn(2, 4, 9, dtype=torch.float64)
    labels = torch.tensor([1, IGNORED, 3, IGNORED])
    found = paired_loss(logits, labels, smoothing=0.1, alpha=2.0)
    real = paired_loss(logits[:, [0, 2]], labels[[0, 2]], smoothing=0.1, alpha=2.0)
    torch.testing.assert_close(found, real, rtol=0, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.7, 5.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk_size", [1, 5, 64])
@pytest.mark.parametrize("has_bias", [True, False])
def test_the_fused_loss_has_the_plain_losss_value_and_gradients(
    smoothing: float, alpha: float, chunk_size: int, has_bias: bool
) -> None:
    torch.manual_seed(4)
    shapes = ((2, 13, 6), (11, 6), (11,)) if has_bias else ((2, 13, 6), (11, 6))
    leaves = [torch.randn(*shape, dtype=torch.float64) for shape in shapes]
    labels = torch.randint(0, 11, (13,))
    plain, fused = ([leaf.clone().requires_grad_() for leaf in leaves] for _ in range(2))
    logits = torch.nn.functional.linear(*plain)
    expected = paired_loss(logits, labels, smoothing=smoothing, alpha=alpha)
    found = projected_paired_loss(
        fused[0],
        fused[1],
        fused[2] if has_bias else None,
        labels,
        smoothing=smoothing,
        alpha=alpha,
        compute_dtype=torch.float64,
        chunk_size=chunk_size,
    )
    (expected * 0.37).backward()
    (found * 0.37).backward()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)
    for mine, other in zip(fused, plain, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=0, atol=1e-12)


def test_the_fused_loss_survives_logits_that_would_overflow() -> None:
    hidden = torch.full((2, 2, 4), 300.0)
    hidden[1] *= -1
    hidden.requires_grad_()
    weight = torch.eye(4).mul(5).requires_grad_()
    loss = projected_paired_loss(
        hidden, weight, torch.zeros(4), torch.tensor([0, 3]), smoothing=0.1, alpha=1.0
    )
    loss.backward()
    assert torch.isfinite(loss)
    assert weight.grad is not None
    assert torch.isfinite(weight.grad).all()


def test_the_fixed_row_gets_no_gradient() -> None:
    torch.manual_seed(5)
    hidden, weight = torch.randn(2, 5, 4), torch.randn(6, 4, requires_grad=True)
    labels = torch.tensor([1, 2, 3, 4, 5])
    projected_paired_loss(
        hidden, weight, torch.zeros(6), labels, smoothing=0.1, alpha=1.0, fixed_id=0
    ).backward()
    assert weight.grad is not None
    assert weight.grad[0].abs().sum() == 0
    assert (weight.grad[1:].abs().sum(1) > 0).all()


def test_bfloat16_products_stay_close_to_float32() -> None:
    torch.manual_seed(6)
    hidden, weight = torch.randn(2, 40, 32), torch.randn(50, 32) / 6
    labels = torch.randint(0, 50, (40,))
    exact, low = (
        projected_paired_loss(
            hidden,
            weight,
            torch.zeros(50),
            labels,
            smoothing=0.1,
            alpha=3.0,
            compute_dtype=compute_dtype,
        )
        for compute_dtype in (torch.float32, torch.bfloat16)
    )
    torch.testing.assert_close(low, exact, rtol=1e-2, atol=0)


def test_autocast_around_it_takes_nothing_to_bfloat16_but_products() -> None:
    torch.manual_seed(7)
    hidden, weight = torch.randn(2, 40, 32), torch.randn(50, 32) / 6
    hidden[1] = hidden[0] + 0.02 * torch.randn(40, 32)
    labels = (hidden[0] @ weight.t()).argmax(1)
    found = []
    for is_around in (True, False):
        leaf = weight.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=is_around):
            loss = projected_paired_loss(
                hidden,
                leaf,
                torch.zeros(50),
                labels,
                smoothing=0.1,
                alpha=5.0,
                compute_dtype=torch.bfloat16,
            )
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own
        found.append((loss, leaf.grad))
    assert torch.equal(found[0][0], found[1][0])
    torch.testing.assert_close(found[0][1], found[1][1], rtol=0, atol=0)
