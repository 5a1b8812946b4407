"""From a network to the backend that runs it: the one place that knows all of them."""

from model.checkpoint.manifest import SpecialTokens
from model.decode.backend import Backend
from model.decode.eager import EagerBackend
from model.decode.grid.backend import GridBackend
from model.decode.grid.recording import CudaGraphs
from model.decode.native import NativeBackend
from model.decode.request import SessionLimits
from model.native.network import Int8Network
from model.nn.transformer import Transformer

Network = Transformer | Int8Network
"""What a session can run."""


def open_backend(network: Network, *, tokens: SpecialTokens, limits: SessionLimits) -> Backend:
    """Allocate caches for a network.

    Args:
        network: Its weights must not change afterwards.
        tokens: The vocabulary's special tokens.
        limits: What to allocate for.

    Raises:
        UnsupportedVariantError: If no backend runs this network.
    """
    if isinstance(network, Int8Network):
        return NativeBackend(network, tokens=tokens, limits=limits)
    if network.target_embedding.weight.device.type == "cuda":
        return GridBackend(network, tokens=tokens, limits=limits, recorder=CudaGraphs())
    return EagerBackend(network, tokens=tokens, limits=limits)
