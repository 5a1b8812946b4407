"""The arithmetic of the int8 kernels, written down slowly: the whole sequence at once, no cache.

Owns the definition that the kernels are compared with: a matrix product of int8 rows by int8
rows, each with its scale, everything else in float. The float part runs in float64 here, so what
differs from the kernels is their float32 and their half-precision cache.
"""

import torch
from torch import Tensor
from torch.nn import functional

from model.checkpoint.quantisation import dequantise_rows, quantise_rows
from model.nn.norms import Norm
from model.nn.transformer import Transformer

_ACTIVATIONS = {"relu": functional.relu, "gelu": functional.gelu, "silu": functional.silu}


def int8_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(…, I) float64 → (…, O): both sides rounded to int8 rows, the product exact."""
    quanta, scale = quantise_rows(weight)
    largest = x.abs().amax(dim=-1, keepdim=True)
    step = torch.where(largest > 0, largest / 127, torch.ones_like(largest))
    product = torch.round(x / step) @ quanta.double().T
    result = product * step * scale.double()
    return result if bias is None else result + bias.double()


class Int8Reference:
    """A float32 network, run as the kernels run it."""

    def __init__(self, transformer: Transformer) -> None:
        self._transformer = transformer
        self._config = transformer.config
        self._state = {name: value.detach() for name, value in transformer.state_dict().items()}

    def log_probs(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Of every next token of one sentence: (S,), (T,) → (T, V) float64."""
        memory = self._encode(source_ids)
        hidden = self._embed("target", target_ids)
        causal = torch.ones(len(target_ids), len(target_ids)).tril().bool()
        for index, layer in enumerate(self._transformer.decoder.layers):
            name = f"decoder.layers.{index}."
            hidden = self._add(
                hidden,
                layer.self_attention_norm,
                lambda x, name=name: self._attend(name + "self_attention.", x, x, causal),
            )
            hidden = self._add(
                hidden,
                layer.cross_attention_norm,
                lambda x, name=name: self._attend(name + "cross_attention.", x, memory, None),
            )
            hidden = self._feed_forward(hidden, layer.feed_forward_norm, name)
        hidden = self._final(hidden, self._transformer.decoder.final_norm)
        table = "output_projection.weight"
        if self._config.tie_output:
            side = "source" if self._config.share_embeddings else "target"
            table = f"{side}_embedding.weight"
        logits = int8_linear(hidden, self._state[table], self._state.get("output_bias"))
        return logits.log_softmax(-1)

    def _encode(self, source_ids: Tensor) -> Tensor:
        hidden = self._embed("source", source_ids)
        for index, layer in enumerate(self._transformer.encoder.layers):
            name = f"encoder.layers.{index}."
            hidden = self._add(
                hidden,
                layer.self_attention_norm,
                lambda x, name=name: self._attend(name + "self_attention.", x, x, None),
            )
            hidden = self._feed_forward(hidden, layer.feed_forward_norm, name)
        return self._final(hidden, self._transformer.encoder.final_norm)

    def _embed(self, side: str, ids: Tensor) -> Tensor:
        embedding = getattr(self._transformer, f"{side}_embedding")
        positions = getattr(self._transformer, f"{side}_positions")
        table = dequantise_rows(*quantise_rows(embedding.weight))
        embedded = table[ids].double() * embedding.scale
        return embedded + positions.table(len(ids), table).detach().double()

    def _add(self, x: Tensor, norm: Norm, sublayer) -> Tensor:
        if self._config.norm_placement == "pre":
            return x + sublayer(self._norm(norm, x))
        return self._norm(norm, x + sublayer(x))

    def _final(self, x: Tensor, norm: Norm | None) -> Tensor:
        return x if norm is None else self._norm(norm, x)

    def _norm(self, norm: Norm, x: Tensor) -> Tensor:
        weight, epsilon = norm.weight.detach().double(), self._config.norm_epsilon
        if self._config.norm == "rmsnorm":
            return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * weight
        return functional.layer_norm(x, x.shape[-1:], weight, norm.bias.detach().double(), epsilon)

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return int8_linear(x, self._state[f"{name}.weight"], self._state.get(f"{name}.bias"))

    def _attend(self, name: str, x: Tensor, y: Tensor, mask: Tensor | None) -> Tensor:
        def heads(letter: str, rows: Tensor) -> Tensor:
            projected = self._linear(f"{name}{letter}_proj", rows)
            return projected.view(len(rows), self._config.num_heads, -1).transpose(0, 1)

        queries, keys, values = heads("q", x), heads("k", y).half(), heads("v", y).half()
        scores = queries @ keys.double().transpose(1, 2) * self._config.query_width**-0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        mixed = scores.softmax(-1) @ values.double()
        return self._linear(f"{name}out_proj", mixed.transpose(0, 1).flatten(1))

    def _feed_forward(self, x: Tensor, norm: Norm, name: str) -> Tensor:
        activation = _ACTIVATIONS[self._config.activation]

        def sublayer(x: Tensor) -> Tensor:
            inner = activation(self._linear(f"{name}feed_forward.up_proj", x))
            return self._linear(f"{name}feed_forward.down_proj", inner)

        return self._add(x, norm, sublayer)
