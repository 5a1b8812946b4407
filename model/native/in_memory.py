"""Packing of a network that is in memory as a `Transformer`, quantised on the way.

Owns what needs torch of a packing; everything else is `model.native.network`.
"""

from collections.abc import Mapping

from torch import Tensor

from model.checkpoint.tensors.quantisation import quantise_rows
from model.native.layout import Floats, Quanta
from model.native.network import INT8_FIELDS, Int8Network, pack
from model.nn.layers import known_decoder_layers
from model.nn.transformer import CELLS, Transformer


def pack_transformer(
    transformer: Transformer,
    *,
    max_positions: int,
    suppressed_ids: tuple[int, ...] = (),
    num_threads: int = 1,
) -> Int8Network:
    """Quantise and pack a network that is in memory; see `pack`."""
    config = transformer.config
    known_decoder_layers(
        transformer.decoder.layers, by=INT8_FIELDS.by, cell=CELLS[config.decoder_cell]
    )
    return pack(
        config,
        NetworkWeights(transformer.state_dict()),
        max_positions=max_positions,
        suppressed_ids=suppressed_ids,
        num_threads=num_threads,
    )


class NetworkWeights:
    """The weights of a network in memory, by name, quantised when they are asked for."""

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        self._state = state

    def __contains__(self, name: str) -> bool:
        """Whether there is such a tensor."""
        return name in self._state

    def rows(self, name: str) -> tuple[Quanta, Floats]:
        """A matrix as int8 rows, (rows, columns), and the scale of each, (rows,)."""
        quanta, scale = quantise_rows(self._state[name])
        return quanta.numpy(), scale.numpy()

    def floats(self, name: str) -> Floats:
        """A tensor of any shape as floats."""
        values: Floats = self._state[name].detach().float().contiguous().numpy()
        return values
