"""From a network to the backend that runs it: the one place that knows all of them."""

from model.decode.backend import Backend
from model.decode.eager import EagerBackend
from model.decode.native import NativeBackend
from model.decode.request import SessionLimits
from model.native.network import Int8Network
from model.nn.transformer import Transformer

Network = Transformer | Int8Network
"""What a session can run."""


def open_backend(
    network: Network, *, limits: SessionLimits, suppressed_ids: tuple[int, ...]
) -> Backend:
    """Allocate caches for a network.

    Args:
        network: Its weights must not change afterwards.
        limits: What to allocate for.
        suppressed_ids: Tokens that are never generated; a packed network brings its own.

    Raises:
        UnsupportedVariantError: If no backend runs this network.
    """
    if isinstance(network, Int8Network):
        return NativeBackend(network, limits=limits)
    return EagerBackend(network, limits=limits, suppressed_ids=suppressed_ids)
