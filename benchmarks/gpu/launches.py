"""Launches of a step of the grid, approximately: as torch's operators, and as Triton's kernels.

    python -m benchmarks.gpu.launches

Owns the counting, on a CPU, with a network of base size's layers but narrow: the number depends on
neither width nor vocabulary, as long as the chunked choice among long rows is taken. Every operator
of torch that reaches a backend is one launch, unless it only looks at memory in another way or
reserves some; attention counts as the one kernel that a GPU has for it; a kernel of ours is noted
instead of being run. An operator may be more than one kernel (a sort, a top-k), so a profile on a
device says more. Results go to benchmarks/results/gpu-launches-DATE.json.
"""

import argparse
import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import write_result
from model.config import ModelConfig, SearchConfig, SpecialTokens
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.recording import Step
from model.nn.transformer import Transformer
from model.request import DecodeRequest, SessionLimits

RESULTS = Path(__file__).parents[1] / "results"
NUM_LAYERS, VOCABULARY = 6, 2100
TOKENS = SpecialTokens(pad_id=0, eos_id=1, unk_id=2, start_id=0, suppressed_ids=(0,))
SIZES = ((1, 4), (16, 4), (32, 4), (64, 1), (1024, 4))
"""Sentences and beams of the steps that are counted."""
_RESERVED = {"empty", "empty_like", "empty_strided", "new_empty"}
_FREE = {"alias", "detach", "lift_fresh", "_reshape_alias", "_unsafe_view", *_RESERVED}


class CountedOperators(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    """Operators that launch something, by name."""

    def __init__(self) -> None:
        """Nothing has been counted."""
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self.counts: Counter[str] = Counter()
        self._is_inside = False

    def one(self, name: str, do: Callable[[], Any]) -> Any:
        """Count what `do` does as one launch of that name."""
        self.counts[name] += 1
        self._is_inside = True
        try:
            return do()
        finally:
            self._is_inside = False

    def __torch_dispatch__(
        self,
        func: Any,  # an OpOverload
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run an operator and count it."""
        name = func.overloadpacket.__name__
        is_from_host = name == "_to_copy" and not any(isinstance(each, Tensor) for each in args)
        if not (self._is_inside or func.is_view or name in _FREE or is_from_host):
            self.counts[name] += 1
        return func(*args, **(kwargs or {}))


class _Zeroed(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    """Memory that only kernels write reads as zeros: the host looks at it although none has run."""

    def __torch_dispatch__(
        self,
        func: Any,  # an OpOverload
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run an operator, and clear what it reserves."""
        found = func(*args, **(kwargs or {}))
        return found.zero_() if func.overloadpacket.__name__ in _RESERVED else found


class _Attentions(TorchFunctionMode):
    """Has an attention counted once, whatever a CPU makes of it."""

    def __init__(self, operators: CountedOperators) -> None:
        super().__init__()
        self._operators = operators

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        if func != F.scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        return self._operators.one("attention", lambda: func(*args, **(kwargs or {})))


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
        self.counts["kernels." + getattr(program, "fn", program).__name__] += 1


class _CountedSteps:
    """A recorder that counts the step it is given, in place of recording it."""

    def __init__(self, launcher: CountingLauncher | None) -> None:
        self._launcher = launcher
        self.counts: Counter[str] = Counter()

    def record(self, step: Step) -> Step:
        if self._launcher is not None:
            self._launcher.counts.clear()
        with CountedOperators() as operators, _Attentions(operators):
            step()
        self.counts = operators.counts
        if self._launcher is not None:
            self.counts += self._launcher.counts
        return step


def count(
    num_sentences: int, *, beam_size: int = 4, launcher: CountingLauncher | None = None
) -> Counter[str]:
    """Launches of one recorded step, by name.

    Args:
        num_sentences: Slots in use.
        beam_size: Rows of each.
        launcher: Of kernels; None: a step of torch's operators.
    """
    recorder = _CountedSteps(launcher)
    backend = GridBackend(
        narrow_base(),
        tokens=TOKENS,
        limits=SessionLimits(
            max_rows=num_sentences * beam_size,
            max_slots=num_sentences,
            max_source_length=32,
            max_target_length=32,
        ),
        recorder=recorder,
        launcher=launcher,
    )
    search = SearchConfig(beam_size=beam_size, max_length=30)
    request = DecodeRequest(source_ids=(5, 6, 1), prefix_ids=(0,), search=search)
    backend.admit(range(num_sentences), [request] * num_sentences)
    with _Zeroed():  # type: ignore[no-untyped-call]  # torch's own
        for _ in range(2):  # the second use of a bucket is recorded
            backend.step()
    return recorder.counts


def narrow_base() -> Transformer:
    """The base size's layers, narrower."""
    config = ModelConfig(
        vocab_size=VOCABULARY,
        d_model=16,
        num_heads=2,
        d_ff=32,
        num_encoder_layers=1,
        num_decoder_layers=NUM_LAYERS,
        dropout=0.0,
    )
    torch.manual_seed(0)
    return Transformer(config).eval()


def forms() -> dict[str, CountingLauncher | None]:
    """The forms that a step can have here: Triton's programs cannot be read without Triton."""
    found: dict[str, CountingLauncher | None] = {"torch": None}
    if importlib.util.find_spec("triton") is not None:
        found["kernels"] = CountingLauncher()
    return found


@torch.inference_mode()
def main() -> int:
    """Count, print and write."""
    parser = argparse.ArgumentParser(description="Count the launches of a step of the grid.")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows: list[dict[str, object]] = []
    for num_sentences, beam_size in SIZES:
        for form, launcher in forms().items():
            found = count(num_sentences, beam_size=beam_size, launcher=launcher)
            print(f"{num_sentences:5} sentences, beam {beam_size}, {form}: {found.total()}")
            rows.append(
                {
                    "sentences": num_sentences,
                    "beam": beam_size,
                    "form": form,
                    "launches": found.total(),
                    "by_name": dict(found.most_common()),
                }
            )
    now = datetime.now(UTC)
    report = {
        "command": describe_command("benchmarks.gpu.launches", sys.argv[1:]),
        "time": now.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "layers": NUM_LAYERS,
        "rows": rows,
    }
    path = write_result(arguments.output, "gpu-launches", now, report)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
