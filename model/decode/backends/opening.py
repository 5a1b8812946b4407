"""Choice of a session's backend by its network.

Owns the one place of decoding where torch is loaded late: int8 needs none, and torch takes seconds.
Which backend in PyTorch a float network gets is `model.decode.backends.floats`.
"""

from typing import TYPE_CHECKING, TypeAlias

from model.config import SpecialTokens
from model.decode.backends.base import Backend
from model.decode.backends.int8 import Int8Backend
from model.native.network import Int8Network
from model.request import SessionLimits
from model.shortlist import Shortlist

if TYPE_CHECKING:
    from model.nn.transformer import Transformer

Network: TypeAlias = "Transformer | Int8Network"
"""What a session can run."""


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
    from model.decode.backends.floats import open_float_backend  # noqa: PLC0415  # loads torch

    return open_float_backend(network, tokens=tokens, limits=limits, shortlist=shortlist)
