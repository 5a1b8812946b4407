"""The output product of a grid: hidden states to logits whose rows a GPU reads well.

Owns a copy of the output weights with two changes. The bias is one more column of the weights, for
an input that is always 1, so that no pass over all logits adds it. And the vocabulary is padded to
whole chunks of the choice (`model.decode.beam_search.wide_topk`), so that rows are aligned: what is
padded has a logit of −inf, which adds nothing to a softmax and is never chosen.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from model.decode.backends.cuda.buckets import padded_vocabulary
from model.nn.transformer import Transformer

_MORE_COLUMNS = 8
"""Columns are added by so many, which keeps rows aligned; all but the first hold zeros."""


class OutputProduct:
    """Projection of hidden states with padding and bias in one product."""

    def __init__(self, transformer: Transformer, *, score_dtype: torch.dtype) -> None:
        """Copy the weights, which must not change afterwards."""
        projection, bias = transformer.output_projection, transformer.output_bias
        weight = transformer.target_embedding.weight if projection is None else projection.weight
        size, width = weight.shape
        self._weight = weight.new_zeros(padded_vocabulary(size), width + _MORE_COLUMNS)
        self._weight[:size, :width] = weight.detach()
        if bias is not None:
            self._weight[:size, width] = bias.detach()
        self._weight[size:, width] = float("-inf")
        self._ones = weight.new_ones(1, _MORE_COLUMNS)
        self._score_dtype = score_dtype

    def __call__(self, hidden: Tensor, *, with_bias: bool = True) -> Tensor:
        """Logits in the precision of scores: sums of 8-bit mantissas would tie where none is.

        Args:
            hidden: (R, D).
            with_bias: Whether to add the bias. Without it the first V logits alone mean anything:
                what is padded is not −inf.

        Returns:
            (R, V'), V' the padded vocabulary.
        """
        weight, inputs = self._weight, hidden
        if with_bias:
            inputs = torch.cat((hidden, self._ones.expand(len(hidden), -1)), dim=1)
        else:
            weight = weight[:, : hidden.shape[1]]
        if hidden.dtype == self._score_dtype:
            return F.linear(inputs, weight)
        if hidden.device.type == "cuda":
            return torch.mm(inputs, weight.t(), out_dtype=self._score_dtype)
        # CPUs have no product that widens.
        return inputs.to(self._score_dtype) @ weight.to(self._score_dtype).t()
