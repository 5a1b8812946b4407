"""Choice of the backend in PyTorch that runs a float network: with caches, on a GPU, or plain."""

from functools import partial

import torch

from model.config import ModelConfig, SpecialTokens
from model.decode.backends.base import Backend
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.kernels.opening import device_launcher
from model.decode.backends.cuda.recording import CudaGraphs
from model.decode.backends.eager.backend import EagerBackend
from model.decode.backends.eager.incremental import EAGER_FIELDS
from model.decode.backends.plain.backend import PlainBackend
from model.errors import UnsupportedVariantError
from model.honoured import unsupported_fields
from model.nn.transformer import Transformer
from model.request import SessionLimits
from model.shortlist import Shortlist
from model.system import gpu


def slow_reason(config: ModelConfig) -> str | None:
    """Why no backend with caches runs a network, or None if one does."""
    problems = unsupported_fields(config, EAGER_FIELDS)  # the grid honours the same
    return f"no decoder with caches runs it: {'; '.join(problems)}" if problems else None


def open_float_backend(
    transformer: Transformer,
    *,
    tokens: SpecialTokens,
    limits: SessionLimits,
    shortlist: Shortlist | None = None,
) -> Backend:
    """Allocate caches for a network, if a backend with caches runs it.

    Args and errors as of `model.decode.backends.opening.open_backend`.
    """
    if slow_reason(transformer.config) is not None:
        return PlainBackend(transformer, tokens=tokens, limits=limits, shortlist=shortlist)
    if transformer.target_embedding.weight.device.type == "cuda":
        if shortlist is not None:
            raise UnsupportedVariantError(
                "a GPU does not decode with a lexical shortlist; a CPU does"
            )
        torch.cuda.empty_cache()  # tables of an earlier session go before the next ones come
        weight = transformer.target_embedding.weight
        return GridBackend(
            transformer,
            tokens=tokens,
            limits=limits,
            recorder=CudaGraphs(),
            launcher=device_launcher(weight.device, weight.dtype),
            free_bytes=partial(gpu.free_bytes, weight.device),
        )
    return EagerBackend(transformer, tokens=tokens, limits=limits, shortlist=shortlist)
