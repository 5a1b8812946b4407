"""Tensors of a network against those that a source gives: other shapes, and what nothing reads.

Owns the comparison and its sentences, so that an importer which has found one problem tells these
along with it. Tensors that a source lacks are told where the names that it has are known.
"""

from collections.abc import Iterable, Iterator, Mapping

import torch

from model.checkpoint.consistency import size_problems
from model.config import ModelConfig
from model.errors import ConfigError
from model.exchange.imports.imported import ForeignTensor
from model.nn.transformer import Transformer


def network_shapes(network: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of a network, by name; no memory is taken for them.

    Raises:
        ConfigError: There can be no such network; it is not built if it is beyond all sizes.
    """
    problems = size_problems(network)
    if problems:
        raise ConfigError("; ".join(problems))
    with torch.device("meta"):
        state = Transformer(network).state_dict()
    return {name: tuple(value.shape) for name, value in state.items()}


def misshapen(
    tensors: Mapping[str, ForeignTensor], shapes: Mapping[str, tuple[int, ...]]
) -> Iterator[str]:
    """A problem for every tensor that has another shape than the network needs."""
    for name, shape in shapes.items():
        if name in tensors and tensors[name].shape != shape:
            found = list(tensors[name].shape)
            yield f"{name} has shape {found}, expected {list(shape)}"


def unread(names: Iterable[str]) -> Iterator[str]:
    """A problem for every tensor of the source that nothing reads."""
    return (f"{name} is in the source and nothing reads it" for name in names)
