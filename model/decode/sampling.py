"""Drawing of the next token of a row from its likeliest ones, instead of searching on by beams.

Owns the noise and the choice, on tensors. Noise is counter-based (Salmon et al. 2011, "Parallel
random numbers: as easy as 1, 2, 3"): a function of the sentence's seed, the row, the step and the
token alone, so neither company nor order nor backend changes what is drawn. The token with the
largest log p / temperature + Gumbel noise is a draw from the softmax (Gumbel-max). What is summed
up and returned is the network's own log p. The same in C++ is `native/src/sampling.cpp`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from model.config import SearchConfig
from model.decode.beam_search import RowContinuations

_IMPOSSIBLE = float("-inf")
_BITS = 64


def _signed(value: int) -> int:
    """An unsigned number of 64 bits as the integers of tensors have it."""
    return value - (1 << _BITS) if value >= 1 << (_BITS - 1) else value


_STEP = _signed(0x9E3779B97F4A7C15)
_FIRST_FACTOR = _signed(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = _signed(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSampling:
    """Sampling of the rows of a step.

    Attributes:
        seeds: (R,) int64, of each row, its place in its sentence included.
        temperatures: (R,) float64; 0 where a row is not drawn.
        top_ks: (R,) int64.
        top_ps: (R,) float64; infinite where all of the top k stay.
    """

    seeds: Tensor
    temperatures: Tensor
    top_ks: Tensor
    top_ps: Tensor


def numbers_of(search: SearchConfig) -> tuple[float, int, float, int]:
    """Temperature, top k, top p and seed of a sentence; a temperature of 0: nothing is drawn."""
    sampling = search.sampling
    if sampling is None:
        return 0.0, 1, math.inf, 0
    top_p = sampling.top_p if sampling.top_p < 1.0 else math.inf
    return sampling.temperature, sampling.top_k, top_p, sampling.seed


def row_sampling(
    rows: Sequence[tuple[SearchConfig, int]], device: torch.device
) -> RowSampling | None:
    """How rows are drawn; None where no sentence asks for it.

    Args:
        rows: Of every row the search of its sentence, and the beam that it is.
        device: Where it is needed.
    """
    if all(search.sampling is None for search, _ in rows):
        return None
    numbers = [numbers_of(search) for search, _ in rows]
    temperatures, top_ks, top_ps, seeds = zip(*numbers, strict=True)

    def whole(values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=device)

    return RowSampling(
        seeds=mixed(whole(seeds), whole([beam for _, beam in rows])),
        temperatures=torch.tensor(temperatures, dtype=torch.float64, device=device),
        top_ks=whole(top_ks),
        top_ps=torch.tensor(top_ps, dtype=torch.float64, device=device),
    )


def mixed(states: Tensor, counters: Tensor) -> Tensor:
    """Numbers that look drawn, one for each state and counter: splitmix64 (Steele et al. 2014).

    Args:
        states: int64, taken as 64 bits.
        counters: int64 of the same shape, or one that is broadcast to it.
    """
    bits = states + (counters + 1) * _STEP
    bits = (bits ^ _shifted(bits, 30)) * _FIRST_FACTOR
    bits = (bits ^ _shifted(bits, 27)) * _SECOND_FACTOR
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Tensor, places: int) -> Tensor:
    """64 bits shifted to the right, with zeros behind them."""
    return (bits >> places) & ((1 << (_BITS - places)) - 1)


def gumbel_noise(seeds: Tensor) -> Tensor:
    """Gumbel noise of 64 bits each, float64: 52 of them make a number between 0 and 1."""
    uniform = (_shifted(seeds, 12).to(torch.float64) + 0.5) * 2.0**-52
    return -torch.log(-torch.log(uniform))


def sample(
    continuations: RowContinuations, sampling: RowSampling, steps: Tensor
) -> RowContinuations:
    """Leave each row that is drawn the one continuation that was drawn for it.

    Args:
        continuations: The best M tokens of each row; at least the top k, or all there are.
        sampling: How rows are drawn.
        steps: (R,) int64, tokens that each row has chosen so far.
    """
    log_probs, tokens = continuations.log_probs, continuations.tokens  # (R, M)
    rank = torch.arange(tokens.shape[1], device=tokens.device)
    is_drawn = (sampling.temperatures > 0.0).unsqueeze(1)
    divisors = torch.where(is_drawn, sampling.temperatures.unsqueeze(1), 1.0)
    scaled = log_probs.to(torch.float64) / divisors
    scaled = scaled.masked_fill(rank >= sampling.top_ks.unsqueeze(1), _IMPOSSIBLE)
    probs = scaled.softmax(dim=1)
    is_outside = probs.cumsum(dim=1) - probs >= sampling.top_ps.unsqueeze(1)
    seeds = mixed(mixed(sampling.seeds, steps).unsqueeze(1), tokens)
    noisy = scaled.masked_fill(is_outside, _IMPOSSIBLE) + gumbel_noise(seeds)
    drawn = noisy.argmax(dim=1, keepdim=True)
    is_first = rank == 0
    alone = log_probs.gather(1, drawn).masked_fill(~is_first, _IMPOSSIBLE)
    return replace(
        continuations,
        log_probs=torch.where(is_drawn, alone, log_probs),
        tokens=torch.where(is_drawn & is_first, tokens.gather(1, drawn), tokens),
    )
