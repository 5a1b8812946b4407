"""A second kind of decoder cell, which proves that the interface does not know self-attention.

As in an SSRU, a gate mixes the input into a running average; a running total goes along, so that
there are two states of different shapes, neither of which grows.
"""

import torch
from torch import Tensor, nn

from model.cells import StateShape
from model.config import ModelConfig
from model.nn.cells import Cell, Past
from model.nn.layers import DecoderLayer
from model.nn.transformer import Transformer
from support.search_cases import small_transformer


class GatedAverage(Cell):
    """c_t = g_t · c_{t−1} + (1 − g_t) · W x_t, and the sum of all gates so far."""

    name = "gated_average"

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.width = config.d_model
        self.num_heads = config.num_heads
        self.input_proj = nn.Linear(config.d_model, config.d_model, bias=False)
        self.gate_proj = nn.Linear(config.d_model, config.d_model)

    def state_shapes(self) -> tuple[StateShape, ...]:
        return (
            StateShape(num_heads=1, width=self.width, grows=False),
            StateShape(num_heads=self.num_heads, width=self.width // self.num_heads, grows=False),
        )

    def over_sequence(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
        maps: list[Tensor] | None = None,
    ) -> Tensor:
        gates = torch.sigmoid(self.gate_proj(x))
        inputs = self.input_proj(x)
        average = torch.zeros_like(x[:, 0])
        averages = []
        for position in range(x.shape[1]):
            gate = gates[:, position]
            average = gate * average + (1 - gate) * inputs[:, position]
            averages.append(average)
        return torch.stack(averages, dim=1).relu() - gates.cumsum(dim=1).sin()

    def fuse(self) -> "GatedAverage":
        return self

    def forward(self, layer: int, hidden: Tensor, past: Past) -> Tensor:
        """One step."""
        average, total = past.last(layer)
        gate = torch.sigmoid(self.gate_proj(hidden))
        average = gate.unsqueeze(1) * average + ((1 - gate) * self.input_proj(hidden)).unsqueeze(1)
        total = total + gate.view(total.shape)
        past.replace(layer, (average, total))
        return average.flatten(1).relu() - total.flatten(1).sin()


def with_gated_average(*, num_encoder_layers: int = 1, **settings: object) -> Transformer:
    """A small network whose decoder layers all have this cell."""
    transformer = small_transformer(num_encoder_layers=num_encoder_layers, **settings)
    weight = transformer.target_embedding.weight
    for index in range(len(transformer.decoder.layers)):
        layer = DecoderLayer(transformer.config, GatedAverage(transformer.config))
        transformer.decoder.layers[index] = layer.to(weight.dtype)
    return transformer.eval()
