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
        compute_dtype: Type of the matrix products; everything else has the weight's.
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
        num_pieces, sum_dtype = weight.shape[0], weight.dtype
        uniform, peak = smoothing / num_pieces, weight.new_tensor(0.5 * (smoothing - 1.0))
        weight_low = weight.to(compute_dtype)
        bias_low = None if bias is None else bias.to(compute_dtype)
        weight_sum = weight.sum(0)
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros_like(weight)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        total = weight.new_zeros(())
        for begin in range(0, hidden.shape[1], chunk_size):
            chunk = hidden[:, begin : begin + chunk_size]  # (2, n, D)
            places = labels[begin : begin + chunk_size].expand(2, -1)[..., None]
            low = chunk.flatten(0, 1).to(compute_dtype)
            logits = functional.linear(low, weight_low, bias_low)
            logs = logits.log_softmax(-1, dtype=sum_dtype).view(2, -1, num_pieces)
            total += (peak * logs.gather(2, places)).sum() - 0.5 * uniform * logs.sum()
            divergence, grad_logits = _divergence_and_gradient(logs, alpha=alpha)
            total += divergence
            # Before anything is rounded: of a token that is known the two nearly cancel out.
            grad_logits.scatter_add_(2, places, peak.expand(places.shape))
            grad_low = grad_logits.flatten(0, 1).to(compute_dtype)
            grad_hidden[:, begin : begin + chunk_size] = (
                (grad_low @ weight_low).to(sum_dtype) - 0.5 * uniform * weight_sum
            ).view(chunk.shape)
            grad_weight += grad_low.t() @ low
            if grad_bias is not None:
                grad_bias += grad_logits.sum((0, 1))
        grad_weight -= 0.5 * uniform * hidden.to(sum_dtype).sum((0, 1))
        if grad_bias is not None:
            grad_bias -= uniform * hidden.shape[1]
        if fixed_id is not None:
            grad_weight[fixed_id] = 0.0
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        return total

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        (scale,) = grad_outputs
        gradients = (None if found is None else found * scale for found in ctx.saved_tensors)
        return (*gradients, None, None, None, None, None, None)


def _divergence_and_gradient(logs: Tensor, *, alpha: float) -> tuple[Tensor, Tensor]:
    """The divergence's part of the loss, and the gradient by the logits without its targets' part.

    Args:
        logs: (2, n, V) logarithms of the probabilities of both passes.
        alpha: α.

    Returns:
        ¼ α (KL(P‖Q) + KL(Q‖P)), a scalar; and (2, n, V), its gradient and that of half the
        cross-entropies, but for what the smoothed targets take away.
    """
    factor = 0.25 * alpha
    first, second = logs.exp()
    ratios = (logs[0] - logs[1]).mul_(factor)  # ¼ α r
    forth = (first * ratios).sum(-1, keepdim=True)  # ¼ α KL(P‖Q)
    back = (second * ratios).sum(-1, keepdim=True)  # -¼ α KL(Q‖P)
    gradient = torch.empty_like(logs)
    torch.add(ratios, 0.5 + factor - forth, out=gradient[0]).mul_(first).sub_(second, alpha=factor)
    torch.sub(0.5 + factor + back, ratios, out=gradient[1]).mul_(second).sub_(first, alpha=factor)
    return (forth - back).sum(), gradient
