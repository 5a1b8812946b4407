"""`python -m benchmarks.multipliers CHECKPOINT SOURCE TARGET`: one multiplier a matrix, or a row?

Students of Marian's bring a multiplier for the activations of each matrix, 127 / (mean + 1.1
standard deviations) of the largest ones of a batch, over some text
(browsermt/marian-dev, scripts/alphas). Dragoman gives every row of activations a scale of its own.
Here both are put before the products of a checkpoint in float32, the multipliers taken from the
first half of the lines as Marian takes them, and the log-probabilities of the references' tokens of
the other half are compared with those of unrounded activations. Weights are what they are. Prints a
line each and writes benchmarks/results/multipliers-<time>.json.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from model.checkpoint.weights import Checkpoint, load_checkpoint
from model.text.languages.tags import LanguagePair

_LARGEST = 127
_SPREADS = 1.1
_BATCH = 16
_MAX_LENGTH = 100
Round = Callable[[Tensor, Tensor], Tensor]
"""Of activations, (…, inputs), and weights, (outputs, inputs), to what is multiplied instead."""


class Products(TorchFunctionMode):
    """Context in which every matrix product takes other activations.

    Args:
        rounded: Makes them.
    """

    def __init__(self, rounded: Round) -> None:
        super().__init__()
        self._rounded = rounded

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # what any function of torch returns
        """Whatever torch does; products after their activations were rounded."""
        if func is torch.nn.functional.linear:
            activations, weight, *rest = args
            args = (self._rounded(activations, weight), weight, *rest)
        return func(*args, **(kwargs or {}))


class Multipliers:
    """One multiplier for the activations of every matrix, taken from some text."""

    def __init__(self) -> None:
        self._largest: dict[int, list[float]] = {}

    def watch(self, activations: Tensor, weight: Tensor) -> Tensor:
        """Take the largest activation of a batch, and change none."""
        self._largest.setdefault(weight.data_ptr(), []).append(float(activations.abs().max()))
        return activations

    def rounded(self, activations: Tensor, weight: Tensor) -> Tensor:
        """Activations as int8 with the matrix' multiplier holds them."""
        found = self._largest[weight.data_ptr()]
        multiplier = _LARGEST / (fmean(found) + _SPREADS * pstdev(found))
        return (activations * multiplier).round().clamp(-_LARGEST, _LARGEST) / multiplier


def by_row(activations: Tensor, _weight: Tensor) -> Tensor:
    """Activations as int8 with a scale a row holds them."""
    largest = activations.abs().amax(dim=-1, keepdim=True)
    scale = torch.where(largest == 0, 1.0, largest / _LARGEST)
    return (activations / scale).round() * scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Of log-probabilities from those of unrounded activations.

    Attributes:
        mean: Of absolute differences.
        largest: Of them.
        num_tokens: How many were compared.
    """

    mean: float
    largest: float
    num_tokens: int


@torch.inference_mode()
def log_probs(
    checkpoint: Checkpoint, pair: LanguagePair, lines: Sequence[tuple[str, str]]
) -> Tensor:
    """Log-probabilities of all tokens of the references, in the order of the lines."""
    tokenizer, pad_id = checkpoint.tokenizer, checkpoint.manifest.tokens.pad_id
    prefix = tokenizer.target_prefix(pair)
    found = []
    for batch in _batches(lines):
        sources = [tokenizer.encode(source, pair)[-_MAX_LENGTH:] for source, _ in batch]
        targets = [tokenizer.encode_target(target)[:_MAX_LENGTH] for _, target in batch]
        fed = _padded([[*prefix, *target[:-1]] for target in targets], pad_id)
        mask = _padded([[1] * len(source) for source in sources], 0).bool()
        encoded = checkpoint.transformer.encode(_padded(sources, pad_id), mask)
        values = checkpoint.transformer.decode(fed, encoded, mask).log_softmax(dim=-1)
        for row, target in zip(values, targets, strict=True):
            start = len(prefix) - 1
            found.append(row[range(start, start + len(target)), target])
    return torch.cat(found)


def compared(
    checkpoint: Checkpoint, pair: LanguagePair, lines: Sequence[tuple[str, str]]
) -> dict[str, Difference]:
    """Both ways against float32; the first half of the lines says the multipliers."""
    half = len(lines) // 2
    multipliers = Multipliers()
    with Products(multipliers.watch):
        log_probs(checkpoint, pair, lines[:half])
    expected = log_probs(checkpoint, pair, lines[half:])
    ways: Mapping[str, Round] = {
        "a scale a row": by_row,
        "a multiplier a matrix": multipliers.rounded,
    }
    found = {}
    for name, way in ways.items():
        with Products(way):
            gap = (log_probs(checkpoint, pair, lines[half:]) - expected).abs()
        found[name] = Difference(
            mean=float(gap.mean()), largest=float(gap.max()), num_tokens=len(gap)
        )
    return found


def _batches(lines: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    rest = iter(lines)
    while batch := list(islice(rest, _BATCH)):
        yield batch


def _padded(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows])


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.multipliers", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("source", type=Path, help="lines")
    parser.add_argument("target", type=Path, help="their references")
    parser.add_argument("--lines", type=int, default=400, help="at most (%(default)s)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    """Compare, print, write."""
    arguments = parse_arguments(words)
    started, clock = datetime.now(UTC), time.monotonic()
    texts = [
        path.read_text(encoding="utf-8").splitlines()[: arguments.lines]
        for path in (arguments.source, arguments.target)
    ]
    checkpoint = load_checkpoint(arguments.checkpoint)
    pair = checkpoint.manifest.pairs[0]
    found = compared(checkpoint, pair, list(zip(*texts, strict=True)))
    print(f"{'activations':24} {'mean':>8} {'largest':>8}  of {pair.source}-{pair.target}")
    for name, one in found.items():
        print(f"{name:24} {one.mean:8.4f} {one.largest:8.3f}")
    result = {
        "benchmark": "multipliers",
        "command": describe_command("benchmarks.multipliers", words),
        "started": started.isoformat(timespec="seconds"),
        "wall_seconds": round(time.monotonic() - clock, 1),
        "machine": describe_machine(),
        "checkpoint": checkpoint.manifest.name,
        "num_lines": len(texts[0]),
        "rows": {
            name: {"mean": one.mean, "largest": one.largest, "num_tokens": one.num_tokens}
            for name, one in found.items()
        },
    }
    path = write_result(arguments.results, "multipliers", started, result)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
