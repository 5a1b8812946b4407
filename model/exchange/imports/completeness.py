"""Tensors of a network against those that a source gives: other shapes, and what nothing reads.

Owns the comparison and its sentences, so that an importer which has found one problem tells these
along with it; and how many rows may be without a token. Tensors that a source lacks are told where
the names that it has are known.
"""

from collections.abc import Iterable, Iterator, Mapping

import torch

from model.checkpoint.description.consistency import size_problems
from model.config import ModelConfig
from model.errors import ConfigError
from model.exchange.imports.imported import ForeignTensor
from model.nn.transformer import Transformer

_FEW_ROWS, _FEW_OF = 256, 50
"""Rows without a token that a network may have: so many, or one of so many. Programs fill up to a
multiple of 8, 64 or 128, and T5's hundred sentinels are in no SentencePiece file."""


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


def unfilled(name: str, num_tokens: int, num_rows: int) -> Iterator[str]:
    """A problem if a network has many more rows than its vocabulary has tokens.

    Args:
        name: Of the vocabulary, for people.
        num_tokens: Those that have a row.
        num_rows: Of the network.
    """
    if num_rows - num_tokens > max(_FEW_ROWS, num_rows // _FEW_OF):
        yield f"{name} has {num_tokens} tokens; the network has {num_rows} rows"


def unread(names: Iterable[str]) -> Iterator[str]:
    """A problem for every tensor of the source that nothing reads."""
    return (f"{name} is in the source and nothing reads it" for name in names)
