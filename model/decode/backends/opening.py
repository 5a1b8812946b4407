"""Choice of a session's backend by its network.

Owns the one place of decoding where torch is loaded late: int8 needs none, and torch takes seconds.
Which backend in PyTorch a float network gets is `model.decode.backends.floats`.
"""

from typing import TYPE_CHECKING, TypeAlias

from model.config import ModelConfig, SpecialTokens
from model.decode.backends.base import Backend
from model.decode.backends.int8 import Int8Backend
from model.decode.footprint import EAGER_FLOAT32_TABLES, LEAST_TABLES, CacheTables
from model.native.network import Int8Network
from model.request import SessionLimits
from model.shortlist import Shortlist
from model.system.devices import device_type

if TYPE_CHECKING:
    from model.nn.transformer import Transformer

Network: TypeAlias = "Transformer | Int8Network"
"""What a session can run."""


def cache_tables(config: ModelConfig, *, compute_type: str, device: object) -> CacheTables:
    """What caches are made of in the backend that a network gets.

    Args:
        config: Sizes of the network.
        compute_type: Its arithmetic; not "auto".
        device: Where it runs: a name or a `torch.device`.
    """
    if compute_type != "float32" or device_type(device) != "cpu":
        return LEAST_TABLES
    from model.decode.backends.floats import slow_reason  # noqa: PLC0415  # loads torch

    return EAGER_FLOAT32_TABLES if slow_reason(config) is None else LEAST_TABLES


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
