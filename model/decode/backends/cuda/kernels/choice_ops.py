"""The launches from a step's logits to its report: shapes and block sizes of their programs.

Owns the way from tensors to launches, as `ops` does for the network. Tensors are contiguous unless
said otherwise.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from model.decode.backends.cuda.buckets import Bucket
from model.decode.backends.cuda.kernels import choice, search
from model.decode.backends.cuda.kernels.launching import Launcher
from model.decode.backends.cuda.kernels.ops import block_of, wide_of
from model.decode.backends.cuda.tables import GridTables

_CHUNK = 64
_CHUNKS = 16
"""Logits of a chunk, and chunks that one instance measures."""
_NODES = 256
"""Nodes whose ancestors change places together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuations:
    """The best next tokens of each row.

    Attributes:
        log_probs: (R, M) in the precision of scores, best first.
        tokens: (R, M) int32.
    """

    log_probs: Tensor
    tokens: Tensor


class ChoiceOps:
    """The programs of the choice, by one launcher."""

    def __init__(self, launcher: Launcher) -> None:
        """Launch all of them by `launcher`."""
        self._launcher = launcher

    def continuations(
        self, logits: Tensor, bias: Tensor, choosable: Tensor, num: int
    ) -> Continuations:
        """The `num` likeliest next tokens of every row, in two launches.

        Args:
            logits: (R, ≥ V), without bias; columns behind V are not looked at.
            bias: (V,) in the precision of scores.
            choosable: (V,), the same and −inf where a token may not be chosen.
            num: At most V.
        """
        num_rows, size = len(logits), len(bias)
        num_blocks = triton.cdiv(size, _CHUNK * _CHUNKS)
        maxima = bias.new_empty(num_rows, num_blocks * _CHUNKS)
        highest, sums = (bias.new_empty(num_rows, num_blocks) for _ in range(2))
        wide = wide_of(bias.dtype)
        self._launcher.launch(
            choice.measure,
            (num_rows, num_blocks),
            (logits, bias, choosable, maxima, highest, sums, logits.stride(0)),
            {
                "V": size,
                "NUM_BLOCKS": num_blocks,
                "CHUNK": _CHUNK,
                "CHUNKS": _CHUNKS,
                "WIDE": wide,
            },
        )
        found = Continuations(
            log_probs=bias.new_empty(num_rows, num),
            tokens=torch.empty(num_rows, num, device=logits.device, dtype=torch.int32),
        )
        self._launcher.launch(
            choice.pick,
            (num_rows,),
            (
                logits,
                choosable,
                maxima,
                highest,
                sums,
                found.log_probs,
                found.tokens,
                logits.stride(0),
            ),
            {
                "V": size,
                "NUM": num,
                "NUM_BLOCKS": num_blocks,
                "NUM_CHUNKS": num_blocks * _CHUNKS,
                "CHUNK": _CHUNK,
                "BLOCK_BLOCKS": block_of(num_blocks),
                "BLOCK_CHUNKS": block_of(num_blocks * _CHUNKS),
                "WIDE": wide,
            },
        )
        return found

    def search(
        self,
        found: Continuations,
        tables: GridTables,
        bucket: Bucket,
        *,
        sources: Tensor | None,
        eos_id: int,
    ) -> Tensor:
        """Choose what every row becomes, write it into the tables, and report it.

        Args:
            found: The best next tokens of each row.
            tables: The grid's.
            bucket: What the step covers.
            sources: (S, K) int64, or None if none is asked for.
            eos_id: The token that ends a hypothesis.

        Returns:
            (S, 4·K + 1 + 4·C), as `cuda.search.unpack` reads it.
        """
        width, per_row = tables.width, found.tokens.shape[1]
        num_candidates = min(bucket.num_candidates, width * per_row)
        is_double = tables.scores.dtype == torch.float64
        report = torch.empty(
            bucket.num_slots,
            4 * width + 1 + 4 * num_candidates,
            device=tables.device,
            dtype=torch.int64 if is_double else torch.int32,
        )
        self._launcher.launch(
            search.search,
            (bucket.num_slots,),
            (
                found.log_probs,
                found.tokens,
                tables.scores,
                tables.tokens,
                tables.positions,
                tables.widths,
                tables.num_candidates,
                tables.max_lengths,
                tables.prefix_lengths,
                tables.forced,
                tables.ancestors.view(torch.uint8),
                sources,
                report,
                eos_id,
                tables.num_columns,
            ),
            {
                "K": width,
                "M": per_row,
                "C": num_candidates,
                "HAS_SOURCES": sources is not None,
                "BLOCK_K": block_of(width),
                "BLOCK_M": block_of(per_row),
                "BLOCK_C": block_of(num_candidates),
                "BLOCK_T": _NODES,
                "WIDE": tl.float64 if is_double else tl.float32,
                "WHOLE": tl.int64 if is_double else tl.int32,
            },
        )
        return report
