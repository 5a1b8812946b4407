"""From a network to the backend that runs it: the one place that knows all of them."""

from model.config import ModelConfig, SpecialTokens
from model.decode.backends.base import Backend
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.recording import CudaGraphs
from model.decode.backends.eager.backend import EagerBackend
from model.decode.backends.eager.incremental import EAGER_FIELDS
from model.decode.backends.int8 import Int8Backend
from model.decode.backends.plain import PlainBackend
from model.errors import UnsupportedVariantError
from model.honoured import unsupported_fields
from model.native.network import Int8Network
from model.nn.transformer import Transformer
from model.request import SessionLimits
from model.shortlist import Shortlist

Network = Transformer | Int8Network
"""What a session can run."""


def slow_reason(config: ModelConfig) -> str | None:
    """Why no backend with caches runs a network, or None if one does."""
    problems = unsupported_fields(config, EAGER_FIELDS)  # the grid honours the same
    return f"no decoder with caches runs it: {'; '.join(problems)}" if problems else None


def open_backend(
    network: Network,
    *,
    tokens: SpecialTokens,
    limits: SessionLimits,
    shortlist: Shortlist | None = None,
) -> Backend:
    """Allocate caches for a network, if a backend with caches runs it.

    Args:
        network: Its weights must not change afterwards.
        tokens: The vocabulary's special tokens.
        limits: What to allocate for.
        shortlist: What every sentence may choose by its source tokens; None: all tokens.

    Raises:
        UnsupportedVariantError: A shortlist is asked for on a GPU.
    """
    if isinstance(network, Int8Network):
        return Int8Backend(network, tokens=tokens, limits=limits, shortlist=shortlist)
    if slow_reason(network.config) is not None:
        return PlainBackend(network, tokens=tokens, limits=limits, shortlist=shortlist)
    if network.target_embedding.weight.device.type == "cuda":
        if shortlist is not None:
            raise UnsupportedVariantError(
                "a GPU does not decode with a lexical shortlist; a CPU does"
            )
        return GridBackend(network, tokens=tokens, limits=limits, recorder=CudaGraphs())
    return EagerBackend(network, tokens=tokens, limits=limits, shortlist=shortlist)
