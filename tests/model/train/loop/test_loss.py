from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from model.train.data.batching import IGNORED
from model.train.loop.loss import label_smoothed_loss, projected_loss


def smoothed_by_hand(logits: Tensor, label: int, smoothing: float) -> float:
    num_pieces = logits.numel()
    target = torch.full_like(logits, smoothing / num_pieces)
    target[label] += 1.0 - smoothing
    return -(target * logits.log_softmax(-1)).sum().item()


def test_the_loss_is_the_cross_entropy_with_the_smoothed_distribution() -> None:
    logits = torch.randn(3, 7, dtype=torch.float64)
    labels = torch.tensor([2, 0, 6])
    by_hand = sum(
        smoothed_by_hand(row, int(label), 0.1) for row, label in zip(logits, labels, strict=True)
    )
    found = label_smoothed_loss(logits, labels, smoothing=0.1).item()
    assert found == pytest.approx(by_hand, abs=1e-12)


def test_padding_adds_nothing_to_the_sum() -> None:
    logits = torch.randn(2, 4, 9, dtype=torch.float64)
    labels = torch.tensor([[1, 2, 3, 4], [5, 6, IGNORED, IGNORED]])
    short = label_smoothed_loss(logits[1, :2], labels[1, :2], smoothing=0.1)
    long = label_smoothed_loss(logits[0], labels[0], smoothing=0.1)
    both = label_smoothed_loss(logits, labels, smoothing=0.1)
    torch.testing.assert_close(both, short + long)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("chunk_size", [1, 5, 64])
@pytest.mark.parametrize("has_bias", [True, False])
def test_the_fused_loss_has_the_plain_losss_value_and_gradients(
    smoothing: float, chunk_size: int, has_bias: bool
) -> None:
    torch.manual_seed(3)
    shapes = ((13, 6), (11, 6), (11,)) if has_bias else ((13, 6), (11, 6))
    leaves = [torch.randn(*shape, dtype=torch.float64) for shape in shapes]
    labels = torch.randint(0, 11, (13,))
    plain, fused = ([leaf.clone().requires_grad_() for leaf in leaves] for _ in range(2))
    logits = torch.nn.functional.linear(*plain)
    expected = label_smoothed_loss(logits, labels, smoothing=smoothing)
    found = projected_loss(
        fused[0],
        fused[1],
        fused[2] if has_bias else None,
        labels,
        smoothing=smoothing,
        compute_dtype=torch.float64,
        chunk_size=chunk_size,
    )
    (expected * 0.37).backward()
    (found * 0.37).backward()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)
    for mine, other in zip(fused, plain, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=0, atol=1e-12)
    with torch.no_grad():
        alone = projected_loss(
            *leaves[:2],
            leaves[2] if has_bias else None,
            labels,
            smoothing=smoothing,
            compute_dtype=torch.float64,
            chunk_size=chunk_size,
        )
    torch.testing.assert_close(alone, expected, rtol=0, atol=1e-11)


def test_the_fused_loss_survives_logits_that_would_overflow() -> None:
    hidden = torch.full((2, 4), 300.0, requires_grad=True)
    weight = torch.eye(4).mul(5).requires_grad_()
    bias = torch.zeros(4, requires_grad=True)
    loss = projected_loss(hidden, weight, bias, torch.tensor([0, 3]), smoothing=0.1)
    loss.backward()
    assert torch.isfinite(loss)
    assert weight.grad is not None
    assert torch.isfinite(weight.grad).all()


def test_the_fixed_row_gets_no_gradient() -> None:
    hidden, weight = torch.randn(5, 4), torch.randn(6, 4, requires_grad=True)
    labels = torch.tensor([1, 2, 3, 4, 5])
    projected_loss(hidden, weight, torch.zeros(6), labels, smoothing=0.1, fixed_id=0).backward()
    assert weight.grad is not None
    assert weight.grad[0].abs().sum() == 0
    assert (weight.grad[1:].abs().sum(1) > 0).all()


def test_bfloat16_products_stay_close_to_float32() -> None:
    torch.manual_seed(4)
    hidden, weight, bias = torch.randn(40, 32), torch.randn(50, 32) / 6, torch.zeros(50)
    labels = torch.randint(0, 50, (40,))
    exact, low = (
        projected_loss(hidden, weight, bias, labels, smoothing=0.1, compute_dtype=dtype)
        for dtype in (torch.float32, torch.bfloat16)
    )
    torch.testing.assert_close(low, exact, rtol=1e-2, atol=0)


class _Largest(TorchDispatchMode):
    """Remembers the size of the largest tensor that anything returned."""

    num_elements = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        found = func(*args, **(kwargs or {}))
        if isinstance(found, Tensor):
            self.num_elements = max(self.num_elements, found.numel())
        return found


@pytest.mark.parametrize("has_gradients", [True, False])
def test_all_logits_never_exist_at_once(*, has_gradients: bool) -> None:
    hidden, weight = torch.randn(1000, 4), torch.randn(300, 4, requires_grad=True)
    labels = torch.randint(0, 300, (1000,))
    with torch.set_grad_enabled(has_gradients), _Largest() as largest:
        projected_loss(hidden, weight, None, labels, smoothing=0.1, chunk_size=10)
    assert largest.num_elements <= 4000  # the decoder's states
