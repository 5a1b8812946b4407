"""Label-smoothed cross-entropy, summed over target tokens that are not padding.

Owns the two ways to the same sum: from logits (plain, the definition) and from decoder states
(fused with the output projection, so that the (N, V) logits never exist at once). Sums, not
means: gradient accumulation divides once by all target tokens of the update. The loss of two
passes over the same tokens (R-Drop) is `model.train.loop.paired_loss`.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from model.train.data.batching import IGNORED


def label_smoothed_loss(logits: Tensor, labels: Tensor, *, smoothing: float) -> Tensor:
    """Sum of the smoothed cross-entropies (Szegedy et al. 2016, section 7).

    The target distribution is (1 - ε) on the label plus ε / V on every piece.

    Args:
        logits: (..., V).
        labels: (...) int64, `IGNORED` where there is padding.
        smoothing: ε.

    Returns:
        A scalar in nats; divide by the number of labels that are not `IGNORED`.
    """
    return functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]),
        labels.reshape(-1),
        ignore_index=IGNORED,
        label_smoothing=smoothing,
        reduction="sum",
    )


def projected_loss(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    *,
    smoothing: float,
    compute_dtype: torch.dtype = torch.float32,
    chunk_size: int = 256,
    fixed_id: int | None = None,
) -> Tensor:
    """`label_smoothed_loss(hidden @ weight.T + bias, labels)` without keeping the logits.

    The gradients are made together with the loss, `chunk_size` tokens at a time, so that what
    is worked on stays in the processor's cache. Where no gradient is needed, the loss is made by
    the definition, as many tokens at a time.

    Args:
        hidden: (N, D) decoder states of target tokens that are not padding.
        weight: (V, D) output projection.
        bias: (V,), or None.
        labels: (N,) int64, none of them `IGNORED`.
        smoothing: ε.
        compute_dtype: Type of the matrix products; sums and exponentials use the weight's.
        chunk_size: Tokens worked on at a time.
        fixed_id: Row of `weight` that gets no gradient (padding in a tied table), or None.
    """
    if not torch.is_grad_enabled():
        low = weight.to(compute_dtype), None if bias is None else bias.to(compute_dtype)
        total = weight.new_zeros(())
        for begin in range(0, hidden.shape[0], chunk_size):
            chunk, chunk_labels = (t[begin : begin + chunk_size] for t in (hidden, labels))
            logits = functional.linear(chunk.to(compute_dtype), *low).to(weight.dtype)
            total += label_smoothed_loss(logits, chunk_labels, smoothing=smoothing)
        return total
    loss: Tensor = _ProjectedLoss.apply(  # type: ignore[no-untyped-call]  # torch's own
        hidden, weight, bias, labels, smoothing, compute_dtype, chunk_size, fixed_id
    )
    return loss


class _ProjectedLoss(torch.autograd.Function):
    """The sum and its three gradients in one pass.

    With e = exp(z - max z) and s = Σ e per token, the gradient of the logits is
    e / s - (1 - ε)·onehot - ε / V. Only the first term differs from piece to piece; the other two
    are added to the products as one row per label and one sum, which saves passes over (N, V).
    """

    @staticmethod
    def forward(  # noqa: PLR0917  # torch passes them by position
        ctx: Any,  # torch's context object has no public type
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        labels: Tensor,
        smoothing: float,
        compute_dtype: torch.dtype,
        chunk_size: int,
        fixed_id: int | None,
    ) -> Tensor:
        num_pieces, sum_dtype = weight.shape[0], weight.dtype
        uniform, peaked = smoothing / num_pieces, 1.0 - smoothing
        weight_low = weight.to(compute_dtype)
        bias_low = None if bias is None else bias.to(compute_dtype)
        weight_sum = weight.sum(0)
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros_like(weight)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        total = weight.new_zeros(())
        for begin in range(0, hidden.shape[0], chunk_size):
            chunk, chunk_labels = (t[begin : begin + chunk_size] for t in (hidden, labels))
            logits = functional.linear(chunk.to(compute_dtype), weight_low, bias_low)
            logits = logits.to(sum_dtype)
            label_logits = logits.gather(1, chunk_labels[:, None]).squeeze(1)
            logit_sum, peak = logits.sum(1), logits.amax(1, keepdim=True)
            exponentials = logits.sub_(peak).exp_()
            normaliser = exponentials.sum(1)
            log_normaliser = normaliser.log() + peak.squeeze(1)
            total += (log_normaliser - peaked * label_logits - uniform * logit_sum).sum()
            inverse = normaliser.reciprocal()
            low = exponentials.to(compute_dtype)
            grad_hidden[begin : begin + chunk_size] = (
                (low @ weight_low).to(sum_dtype) * inverse[:, None]
                - peaked * weight[chunk_labels]
                - uniform * weight_sum
            )
            grad_weight += low.t() @ (chunk * inverse[:, None]).to(compute_dtype)
            if grad_bias is not None:
                grad_bias += low.t() @ inverse.to(compute_dtype)
        wide = hidden.to(sum_dtype)
        grad_weight.index_add_(0, labels, wide, alpha=-peaked)
        grad_weight -= uniform * wide.sum(0)
        if grad_bias is not None:
            grad_bias -= peaked * torch.bincount(labels, minlength=num_pieces).to(grad_bias.dtype)
            grad_bias -= uniform * hidden.shape[0]
        if fixed_id is not None:
            grad_weight[fixed_id] = 0.0
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        return total

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        (scale,) = grad_outputs
        gradients = (None if found is None else found * scale for found in ctx.saved_tensors)
        return (*gradients, None, None, None, None, None)
