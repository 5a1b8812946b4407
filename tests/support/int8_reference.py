"""The arithmetic of the int8 kernels, written down slowly: the whole sequence at once, no cache.

Owns the definition that the kernels are compared with: a matrix product of int8 rows by int8
rows, each with its scale, everything else in float. The float part runs in float64 here, so what
differs from the kernels is their float32 and their half-precision cache. It needs a configuration
and weights by name, and none of the network's modules.
"""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from model.checkpoint.tensors.quantisation import dequantise_rows, quantise_rows
from model.config import ModelConfig
from model.nn.positions import relative_buckets, sinusoidal_table

_ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu-tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "gelu-sigmoid": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": functional.silu,
}


Rows = tuple[Tensor, Tensor]
"""A matrix as int8 rows, (O, I), and the scale of each, (O,)."""


def int8_linear(x: Tensor, weight: Rows, bias: Tensor | None) -> Tensor:
    """(…, I) float64 → (…, O): both sides rounded to int8 rows, the product exact."""
    quanta, scale = weight
    largest = x.abs().amax(dim=-1, keepdim=True)
    step = torch.where(largest > 0, largest / 127, torch.ones_like(largest))
    product = torch.round(x / step) @ quanta.double().T
    result = product * step * scale.double()
    return result if bias is None else result + bias.double()


class Int8Reference:
    """A float32 network, run as the kernels run it.

    Args:
        config: Of the network.
        state: Its weights.
        rows: Matrices that are int8 already.
        has_float_tables: Embeddings and output layer stay in float, as Marian's tool leaves them;
            the kernels never do.
    """

    def __init__(
        self,
        config: ModelConfig,
        state: Mapping[str, Tensor],
        rows: Mapping[str, Rows] | None = None,
        *,
        has_float_tables: bool = False,
    ) -> None:
        self._config = config
        self._state = state
        self._stored_rows = rows or {}
        self._has_float_tables = has_float_tables

    def _rows(self, name: str) -> Rows:
        return self._stored_rows.get(name) or quantise_rows(self._state[name])

    def log_probs(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Of every next token of one sentence: (S,), (T,) → (T, V) float64."""
        encoded = self._encode(source_ids)
        hidden = self._embed("decoder", target_ids)
        cell = self._config.decoder_cell.replace("-", "_")
        step = self._unit if cell == "ssru" else self._look_back
        for index in range(self._config.num_decoder_layers):
            name = f"decoder.layers.{index}."
            hidden = self._add(hidden, f"{name}{cell}_norm", partial(step, f"{name}{cell}."))
            hidden = self._add(
                hidden,
                f"{name}cross_attention_norm",
                partial(self._attend, f"{name}cross_attention.", y=encoded),
            )
            hidden = self._feed_forward(hidden, name)
        hidden = self._final(hidden, "decoder.final_norm")
        table = "output_projection.weight"
        if self._config.tie_output:
            table = f"{self._table_of('decoder')}.weight"
        factor = self._config.d_model**-0.5 if self._config.scale_output else 1.0
        return self._score(hidden * factor, table).log_softmax(-1)

    def _score(self, hidden: Tensor, table: str) -> Tensor:
        bias = self._state.get("output_bias")
        if not self._has_float_tables:
            return int8_linear(hidden, self._rows(table), bias)
        result = hidden @ self._state[table].double().T
        return result if bias is None else result + bias.double()

    def _encode(self, source_ids: Tensor) -> Tensor:
        hidden = self._embed("encoder", source_ids)
        bias = self._position_bias("encoder", len(source_ids))
        for index in range(self._config.num_encoder_layers):
            name = f"encoder.layers.{index}."
            hidden = self._add(
                hidden,
                f"{name}self_attention_norm",
                partial(self._look_around, f"{name}self_attention.", bias=bias),
            )
            hidden = self._feed_forward(hidden, name)
        return self._final(hidden, "encoder.final_norm")

    def _table_of(self, stack: str) -> str:
        is_source = stack == "encoder" or self._config.share_embeddings
        return "source_embedding" if is_source else "target_embedding"

    def _embed(self, stack: str, ids: Tensor) -> Tensor:
        config = self._config
        name = f"{self._table_of(stack)}.weight"
        table = self._state[name] if self._has_float_tables else dequantise_rows(*self._rows(name))
        embedded = table[ids].double() * (config.d_model**0.5 if config.scale_embedding else 1.0)
        embedded = embedded + self._positions(stack, len(ids))
        return (
            self._norm(f"{stack}.embedding_norm", embedded) if config.embedding_norm else embedded
        )

    def _positions(self, stack: str, length: int) -> Tensor | float:
        config = self._config
        places = torch.arange(length) + config.position_offset
        if config.position == "relative":
            return 0.0
        if config.position == "learned":
            side = "source" if stack == "encoder" else "target"
            return self._state[f"{side}_positions.vectors.weight"][places].double()
        return sinusoidal_table(config.position, places, config.d_model).double()

    def _position_bias(self, stack: str, length: int) -> Tensor | None:
        """(H, T, T)."""
        if self._config.position != "relative":
            return None
        places = torch.arange(length)
        buckets = relative_buckets(places - places[:, None], is_bidirectional=stack == "encoder")
        scores = self._state[f"{stack}.position_bias.scores.weight"]
        return scores[buckets].permute(2, 0, 1).double()

    def _add(self, x: Tensor, norm: str, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self._config.norm_placement == "pre":
            return x + sublayer(self._norm(norm, x))
        return self._norm(norm, x + sublayer(x))

    def _final(self, x: Tensor, norm: str) -> Tensor:
        return self._norm(norm, x) if self._config.norm_placement == "pre" else x

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight, epsilon = self._state[f"{name}.weight"].double(), self._config.norm_epsilon
        if self._config.norm == "rmsnorm":
            return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * weight
        bias = self._state[f"{name}.bias"].double()
        return functional.layer_norm(x, x.shape[-1:], weight, bias, epsilon)

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return int8_linear(x, self._rows(f"{name}.weight"), self._state.get(f"{name}.bias"))

    def _look_around(self, name: str, x: Tensor, bias: Tensor | None) -> Tensor:
        """The encoder's self-attention."""
        return self._attend(name, x, x, bias)

    def _look_back(self, name: str, x: Tensor) -> Tensor:
        """Causal self-attention."""
        is_ahead = torch.ones(len(x), len(x)).triu(1).bool()
        bias = torch.zeros(len(x), len(x)).double().masked_fill(is_ahead, float("-inf"))
        by_distance = self._position_bias("decoder", len(x))
        return self._attend(name, x, x, bias=bias if by_distance is None else bias + by_distance)

    def _unit(self, name: str, x: Tensor) -> Tensor:
        """The simpler simple recurrent unit, position by position."""
        forget = torch.sigmoid(self._linear(f"{name}forget_proj", x))
        candidate = self._linear(f"{name}candidate_proj", x)
        state, states = torch.zeros_like(x[0]), []
        for f, c in zip(forget, candidate, strict=True):
            state = f * state + (1 - f) * c
            states.append(state)
        return torch.stack(states).relu()

    def _attend(self, name: str, x: Tensor, y: Tensor, bias: Tensor | None = None) -> Tensor:
        def heads(letter: str, rows: Tensor) -> Tensor:
            projected = self._linear(f"{name}{letter}_proj", rows)
            return projected.view(len(rows), self._config.num_heads, -1).transpose(0, 1)

        queries, keys, values = heads("q", x), heads("k", y).half(), heads("v", y).half()
        factor = self._config.query_width**-0.5 if self._config.scale_attention else 1.0
        scores = queries @ keys.double().transpose(1, 2) * factor
        if bias is not None:
            scores = scores + bias
        mixed = scores.softmax(-1) @ values.double()
        return self._linear(f"{name}out_proj", mixed.transpose(0, 1).flatten(1))

    def _feed_forward(self, x: Tensor, name: str) -> Tensor:
        activation = _ACTIVATIONS[self._config.activation]

        def sublayer(x: Tensor) -> Tensor:
            inner = self._linear(f"{name}feed_forward.up_proj", x)
            if self._config.gated_feed_forward:
                inner = activation(self._linear(f"{name}feed_forward.gate_proj", x)) * inner
            else:
                inner = activation(inner)
            return self._linear(f"{name}feed_forward.down_proj", inner)

        return self._add(x, f"{name}feed_forward_norm", sublayer)
