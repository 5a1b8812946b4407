"""Base of the backends in PyTorch: what each of them answers in the same way.

Owns the network that they run, the attention of a finished hypothesis (a pass of the plain network)
and what is counted. Does not own a step: each backend has its own loop and its own tensors.
"""

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from model.config import SpecialTokens
from model.decode.attention import FloatArray
from model.decode.forced_attention import forced_attention
from model.decode.timing import StepPart, Stopwatch
from model.nn.transformer import Transformer
from model.request import DecodeRequest, SessionLimits


class TorchBackend:
    """Network of a session in PyTorch, and its counts.

    Args:
        transformer: In evaluation mode; its weights must not change afterwards.
        tokens: The vocabulary's special tokens.
        limits: What the session lets run at once.
    """

    def __init__(
        self, transformer: Transformer, *, tokens: SpecialTokens, limits: SessionLimits
    ) -> None:
        weight = transformer.target_embedding.weight
        self._transformer = transformer
        self._tokens = tokens
        self._limits = limits
        self._device = weight.device
        self._score_dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
        self._num_encoded_tokens = 0
        self._watch = Stopwatch(time.perf_counter)

    def _ids(self, values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self._device)

    def attention(
        self, request: DecodeRequest, hypotheses: Sequence[Sequence[int]]
    ) -> list[FloatArray]:
        """Weights (T, S) by a pass of the plain network for each; see `Backend.attention`."""
        return [forced_attention(self._transformer, request, one) for one in hypotheses]

    def num_encoded_tokens(self) -> int:
        """Source tokens encoded so far, with the padding of their batches or buckets."""
        return self._num_encoded_tokens

    def num_waiting(self) -> int:
        """None: what a session lets run has its caches from the start."""
        return 0

    def step_seconds(self) -> dict[StepPart, float]:
        """Seconds so far by the parts of a step, as far as a backend tells them apart."""
        return dict(self._watch.seconds)
