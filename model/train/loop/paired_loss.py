"""R-Drop (Liang et al. 2021): the loss of two passes over the same tokens with different dropout.

Owns the two ways to the same sum, as `model.train.loop.loss` does for one pass: from logits (plain,
the definition) and from decoder states (fused with the output projection, a few tokens at a time).

Per token, with P and Q the distributions of two passes whose dropout differs and y the label, the
paper minimises −log P(y) − log Q(y) + α · ½ (KL(P‖Q) + KL(Q‖P)). Here it is half of that: without
dropout it is the loss of one pass, so that losses and the norms of gradients can be compared, and
α keeps the paper's meaning.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from model.train.data.batching import IGNORED
from model.train.loop.loss import label_smoothed_loss


def paired_loss(logits: Tensor, labels: Tensor, *, smoothing: float, alpha: float) -> Tensor:
    """Sum over real tokens of half the R-Drop loss.

    Args:
        logits: (2, ..., V): both passes.
        labels: (...) int64, `IGNORED` where there is padding.
        smoothing: ε of both cross-entropies.
        alpha: α, the weight of the divergence.

    Returns:
        A scalar in nats; divide by the number of labels that are not `IGNORED`.
    """
    is_real = labels != IGNORED
    first, second = logits[:, is_real].log_softmax(-1)
    divergence = ((first.exp() - second.exp()) * (first - second)).sum()  # KL(P‖Q) + KL(Q‖P)
    crosses = label_smoothed_loss(logits, torch.stack([labels, labels]), smoothing=smoothing)
    total: Tensor = 0.5 * crosses + 0.25 * alpha * divergence
    return total


def projected_paired_loss(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    *,
    smoothing: float,
    alpha: float,
    compute_dtype: torch.dtype = torch.float32,
    chunk_size: int = 128,
    fixed_id: int | None = None,
) -> Tensor:
    """`paired_loss(hidden @ weight.T + bias, labels)` without keeping the logits.

    Args:
        hidden: (2, N, D) decoder states of both passes, of tokens that are not padding.
        weight: (V, D) output projection.
        bias: (V,), or None.
        labels: (N,) int64, none of them `IGNORED`.
        smoothing: ε.
        alpha: α.
        compute_dtype: Type of the matrix products; everything else has the hidden states' type.
        chunk_size: Tokens worked on at a time.
        fixed_id: Row of `weight` that gets no gradient (padding in a tied table), or None.
    """
    loss: Tensor = _ProjectedPairedLoss.apply(  # type: ignore[no-untyped-call]  # torch's own
        hidden, weight, bias, labels, smoothing, alpha, compute_dtype, chunk_size, fixed_id
    )
    return loss


class _ProjectedPairedLoss(torch.autograd.Function):
    """The sum and its three gradients in one pass over the tokens.

    With r = log P − log Q, the gradient of KL(P‖Q) + KL(Q‖P) by the logits of P is
    P (r − KL(P‖Q)) + P − Q; that of Q is the same with both exchanged and −r for r.
    """

    @staticmethod
    def forward(  # noqa: PLR0917  # torch passes them by position
        ctx: Any,  # torch's context object has no public type
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        labels: Tensor,
        smoothing: float,
        alpha: float,
        compute_dtype: torch.dtype,
        chunk_size: int,
        fixed_id: int | None,
    ) -> Tensor:
        weight_low = weight.to(compute_dtype)
        bias_low = None if bias is None else bias.to(compute_dtype)
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros_like(weight)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        total = hidden.new_zeros(())
        for begin in range(0, hidden.shape[1], chunk_size):
            chunk = hidden[:, begin : begin + chunk_size]  # (2, n, D)
            low = chunk.flatten(0, 1).to(compute_dtype)
            logits = functional.linear(low, weight_low, bias_low).to(hidden.dtype)
            value, grad_logits = _value_and_gradient(
                logits.view(*chunk.shape[:2], -1),
                labels[begin : begin + chunk_size],
                smoothing=smoothing,
                alpha=alpha,
            )
            total += value
            flat = grad_logits.flatten(0, 1)
            flat_low = flat.to(compute_dtype)
            grad_hidden[:, begin : begin + chunk_size] = (flat_low @ weight_low).view_as(chunk)
            grad_weight += flat_low.t() @ low
            if grad_bias is not None:
                grad_bias += flat.sum(0)
        if fixed_id is not None:
            grad_weight[fixed_id] = 0.0
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        return total

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        (scale,) = grad_outputs
        gradients = (None if found is None else found * scale for found in ctx.saved_tensors)
        return (*gradients, None, None, None, None, None, None)


def _value_and_gradient(
    logits: Tensor, labels: Tensor, *, smoothing: float, alpha: float
) -> tuple[Tensor, Tensor]:
    """The loss of (2, n, V) logits of real tokens, and its gradient by them."""
    logs = logits.log_softmax(-1)
    probabilities = logs.exp()
    num_pieces = logits.shape[-1]
    both = labels[None, :, None].expand(2, -1, -1)
    crosses = (smoothing - 1.0) * logs.gather(2, both).sum() - smoothing / num_pieces * logs.sum()
    ratios = logs - logs.flip(0)  # r, then −r
    divergences = (probabilities * ratios).sum(-1, keepdim=True)  # KL(P‖Q), then KL(Q‖P)
    value = 0.5 * crosses + 0.25 * alpha * divergences.sum()
    gradient = ratios.sub_(divergences).mul_(probabilities)
    gradient += probabilities - probabilities.flip(0)
    gradient *= 0.25 * alpha
    gradient += 0.5 * (probabilities - smoothing / num_pieces)
    gradient.scatter_add_(
        2, both, gradient.new_full((), 0.5 * (smoothing - 1.0)).expand(both.shape)
    )
    return value, gradient
