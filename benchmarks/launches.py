"""Kernels that a step of the grid launches, counted without a device, in torch and with kernels.

    python -m benchmarks.launches

Owns the counting: a step runs on a CPU, and every operator of torch that reaches a backend is one
launch, unless it only looks at memory in another way or reserves some; a kernel of ours is noted
instead of being run. An operator may launch several kernels on a device (a top-k of long rows
does), so that the count of torch's operators is the least there can be. Results go to
benchmarks/results/launches-DATE.json.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.machine import describe_command, describe_machine
from model.config import ModelConfig, SearchConfig, SpecialTokens
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.recording import Step
from model.nn.transformer import Transformer
from model.request import DecodeRequest, SessionLimits

_TOKENS = SpecialTokens(pad_id=0, eos_id=1, unk_id=2, start_id=0, suppressed_ids=(0,))
_RESERVING = ("aten.empty", "aten.new_empty", "aten.empty_like", "aten.empty_strided")
_LOOKING = ("aten._unsafe_view", "aten._reshape_alias", "aten.lift_fresh", "aten.detach")


class CountedOperators(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    """Operators that launch something, by name."""

    def __init__(self) -> None:
        """Nothing has been counted."""
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(
        self,
        func: Any,  # an OpOverload
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run an operator and count it."""
        name = str(func).rpartition(".")[0]
        if not func.is_view and name not in _RESERVING + _LOOKING:
            self.counts[name] += 1
        return func(*args, **(kwargs or {}))


class CountingLauncher:
    """Notes kernels of ours and runs none: what they would have written stays as it was."""

    def __init__(self) -> None:
        """Nothing has been counted."""
        self.counts: Counter[str] = Counter()

    def launch(
        self,
        program: Any,  # what triton.jit made
        grid: tuple[int, ...],  # noqa: ARG002  # of a launch, not of a count
        arguments: Sequence[Tensor | int | float | None],  # noqa: ARG002
        constants: Mapping[str, object],  # noqa: ARG002
        *,
        num_warps: int = 4,  # noqa: ARG002
    ) -> None:
        """See `Launcher.launch`."""
        self.counts[getattr(program, "fn", program).__name__] += 1


class _CountedSteps:
    """A recorder that counts the step it is given, in place of recording it."""

    def __init__(self, count: Callable[[Step], None]) -> None:
        self._count = count

    def record(self, step: Step) -> Step:
        self._count(step)
        return step


def counted_step(
    transformer: Transformer,
    *,
    num_sentences: int,
    beam_size: int,
    launcher: CountingLauncher | None,
) -> dict[str, int]:
    """Launches of one recorded step, by name.

    Args:
        transformer: On the CPU.
        num_sentences: Slots in use.
        beam_size: Rows of each.
        launcher: Of kernels; None: a step of torch's operators.
    """
    found: Counter[str] = Counter()

    def count(step: Step) -> None:
        if launcher is not None:
            launcher.counts.clear()
        with CountedOperators() as operators:
            step()
        found.update(operators.counts)
        if launcher is not None:
            found.update({f"kernels.{name}": num for name, num in launcher.counts.items()})

    limits = SessionLimits(
        max_rows=num_sentences * beam_size,
        max_slots=num_sentences,
        max_source_length=32,
        max_target_length=32,
    )
    backend = GridBackend(
        transformer,
        tokens=_TOKENS,
        limits=limits,
        recorder=_CountedSteps(count),
        launcher=launcher,
    )
    search = SearchConfig(beam_size=beam_size, max_length=30)
    request = DecodeRequest(source_ids=(*range(3, 28), 1), prefix_ids=(0,), search=search)
    backend.admit(range(num_sentences), [request] * num_sentences)
    for _ in range(2):  # the second use of a bucket is recorded
        backend.step()
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def narrow_base() -> Transformer:
    """The base size's layers, narrower: a count depends on neither width nor vocabulary."""
    config = ModelConfig(
        vocab_size=4096,
        d_model=64,
        num_heads=8,
        d_ff=256,
        num_encoder_layers=1,
        num_decoder_layers=6,
        dropout=0.0,
    )
    torch.manual_seed(1)
    return Transformer(config).eval()


@torch.inference_mode()
def main() -> None:
    """Print a table and write the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results"))
    folder = parser.parse_args().results
    rows: list[dict[str, object]] = []
    print("sentences  beam  torch  kernels")
    for num_sentences, beam_size in ((1, 4), (16, 4), (32, 4), (64, 1)):
        totals = []
        for launcher in (None, CountingLauncher()):
            launches = counted_step(
                narrow_base(), num_sentences=num_sentences, beam_size=beam_size, launcher=launcher
            )
            totals.append(sum(launches.values()))
            rows.append(
                {
                    "sentences": num_sentences,
                    "beam": beam_size,
                    "form": "torch" if launcher is None else "kernels",
                    "total": totals[-1],
                    "launches": launches,
                }
            )
        print(f"{num_sentences:9}{beam_size:6}{totals[0]:7}{totals[1]:9}", flush=True)
    result = {
        "command": describe_command("benchmarks.launches", sys.argv[1:]),
        "machine": describe_machine(),
        "rows": rows,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"launches-{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
