"""The search of a step made of the Triton programs: what runs in place of the search in torch.

Owns the output layer's bias, which it adds itself; which steps it covers is `covering`. The torch
form, `cuda.search`, is its oracle and serves all other steps: tables are the same for both, so that
steps of either kind may follow each other.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from model.decode.backends.cuda.buckets import Bucket
from model.decode.backends.cuda.kernels.choice_ops import ChoiceOps
from model.decode.backends.cuda.tables import GridTables


class KernelChooser:
    """One step of beam search for all slots of a bucket."""

    def __init__(
        self, ops: ChoiceOps, bias: Tensor, *, suppressed_ids: Sequence[int], eos_id: int
    ) -> None:
        """Take note of the tokens.

        Args:
            ops: The programs.
            bias: (V,) of the output layer, in the precision of scores; zeros where it has none.
            suppressed_ids: Tokens never generated; their probability mass stays theirs.
            eos_id: The token that ends a hypothesis.
        """
        self._ops = ops
        self._bias = bias
        self._choosable = bias.clone()
        if suppressed_ids:
            index = torch.tensor(suppressed_ids, device=bias.device)
            self._choosable.index_fill_(0, index, float("-inf"))
        self._eos_id = eos_id

    def step(
        self, tables: GridTables, bucket: Bucket, logits: Tensor, sources: Tensor | None
    ) -> Tensor:
        """See `GridSearch.step`; the logits are without bias."""
        num = min(bucket.num_candidates, len(self._bias))
        found = self._ops.continuations(logits, self._bias, self._choosable, num)
        return self._ops.search(found, tables, bucket, sources=sources, eos_id=self._eos_id)
