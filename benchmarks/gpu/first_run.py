"""The first minutes on a device: is everything there, is it right, and what does each thing cost.

    python -m benchmarks.gpu.first_run [--device cpu --quick] [--output FOLDER] [--seconds 240]

Owns the order: what decides most comes first, each answer is printed and written before the next
is looked for, and an answer that fails stops none of the others. docs/gpu-first-run.md says what
each figure decides. With `--device cpu` the same code runs without graphs: that is how it is tried.
"""

import argparse
import importlib.metadata
import itertools
import json
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu import host, launches, ours, training
from benchmarks.gpu.work import forced_requests, open_session, recorder_for, run_all
from benchmarks.machine import describe_command, describe_machine
from benchmarks.random_checkpoint import SHAPES, TOKENS, random_transformer
from model.decode.backends.cuda.recording import Step
from model.nn.transformer import Transformer
from model.system.gpu import use_unplanned_attention

ROOT = Path(__file__).resolve().parents[2]
COUNTS, QUICK_COUNTS = (1, 32, 256, 1024), (1, 3)
QUICK: Mapping[str, Any] = {"vocab_size": 400, "d_model": 64, "d_ff": 64}
PACKAGES = ("torch", "triton", "transformers", "numpy", "msgspec", "fastapi", "ctranslate2")
Found = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Where and how large."""

    device: torch.device
    is_quick: bool

    @property
    def is_gpu(self) -> bool:
        """Whether there are graphs, events and half precision."""
        return self.device.type == "cuda"

    @property
    def counts(self) -> tuple[int, ...]:
        """Sentences at once."""
        return QUICK_COUNTS if self.is_quick else COUNTS

    def network(self) -> Transformer:
        """A random network of base size, in the precision that is served."""
        config = replace(SHAPES["base"], **QUICK) if self.is_quick else SHAPES["base"]
        dtype = torch.bfloat16 if self.is_gpu else torch.float32
        return random_transformer(config, seed=1).to(self.device, dtype).eval()


def versions(setting: Setting) -> Iterator[Found]:
    """Packages, device, driver."""
    found: Found = {"python": sys.version.split()[0]}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    if setting.is_gpu:
        free, total = torch.cuda.mem_get_info()
        found |= {
            "device": torch.cuda.get_device_name(),
            "capability": list(torch.cuda.get_device_capability()),
            "cuda": torch.version.cuda,
            "free_gib": round(free / 2**30, 1),
            "total_gib": round(total / 2**30, 1),
        }
    yield found


def widening_product(setting: Setting) -> Iterator[Found]:
    """Whether a product of bfloat16 sums and answers in float32."""
    left, padded = (torch.randn(64, 72, device=setting.device).bfloat16() for _ in range(2))
    left, right = left[:, :64].contiguous(), padded[:, :64].t()  # rows as `OutputProduct` has them
    if not setting.is_gpu:
        yield {"skipped": "only a GPU's product widens"}
        return
    wide = torch.mm(left, right, out_dtype=torch.float32)
    gap = (wide - left.float() @ right.float()).abs().max().item()
    yield {"largest_gap": gap}


def right(setting: Setting) -> Iterator[Found]:
    """The device's hypotheses on the bundled network against a CPU's."""
    text = (ROOT / "benchmarks" / "sentences.en").read_text(encoding="utf-8")
    sentences = text.splitlines()[: 4 if setting.is_quick else 32]
    yield ours.correctness(ROOT / "checkpoints" / "en-zh-small", sentences, setting.device)


def operations(_: Setting) -> Iterator[Found]:
    """Launches of a step, counted on the CPU, in the forms that it can have."""
    for form, launcher in launches.forms().items():
        found = launches.count(8, launcher=launcher)
        by_name = dict(found.most_common(12))
        yield {"form": form, "launches": found.total(), "by_name": by_name}


class _NotedRecorder:
    """What the device's recorder does, its seconds, and the step that was recorded last."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._recorder = recorder_for(device)
        self.seconds: list[float] = []
        self.step: Step | None = None

    def record(self, step: Step) -> Step:
        _wait(self._device)
        started = time.perf_counter()
        self.step = self._recorder.record(step)
        self.seconds.append(time.perf_counter() - started)
        return self.step


@torch.inference_mode()
def steps(setting: Setting) -> Iterator[Found]:
    """Capture and replay of a step of so many sentences, the most first, in both forms."""
    network = setting.network()
    sizes = sorted(setting.counts, reverse=True)
    forms = ("kernels", "torch") if setting.is_gpu else ("torch",)
    for count, form in itertools.product(sizes, forms):
        recorder = _NotedRecorder(setting.device)
        session = open_session(
            network,
            TOKENS,
            num_sentences=count,
            beam_size=4,
            recorder=recorder,
            with_kernels=form == "kernels",
        )
        session.admit(_requests(network, count))
        for _ in range(3):
            session.step()
        assert recorder.step is not None
        seconds = [_seconds_of(recorder.step, setting.device) for _ in range(20)]
        yield {
            "sentences": count,
            "form": form,
            "capture_ms": round(1e3 * recorder.seconds[0], 3),
            "replay_ms": round(1e3 * statistics.median(seconds), 4),
        }


def _requests(network: Transformer, count: int) -> list[Any]:
    return forced_requests(
        count, beam_size=4, vocab_size=network.config.output_size, start_id=TOKENS.start_id
    )


def _seconds_of(step: Step, device: torch.device) -> float:
    """Of one step, by the device's own clock where it has one."""
    if device.type != "cuda":
        started = time.perf_counter()
        step()
        return time.perf_counter() - started
    first = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch's own
    last = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch's own
    first.record()
    step()
    last.record()
    last.synchronize()
    return float(first.elapsed_time(last)) / 1e3


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


@torch.inference_mode()
def rounds(setting: Setting) -> Iterator[Found]:
    """Whole rounds of so many sentences, from ids to ids, encoder and host included."""
    network = setting.network()
    for count in setting.counts:
        session = open_session(network, TOKENS, num_sentences=count, beam_size=4)
        requests = _requests(network, count)
        seconds = []
        for _ in range(3 if setting.is_quick else 6):
            _wait(setting.device)
            started = time.perf_counter()
            results = run_all(session, requests)
            _wait(setting.device)
            seconds.append(time.perf_counter() - started)
        tokens = sum(len(each[0].token_ids) + 1 for each in results)
        best = statistics.median(seconds[2:])
        yield {
            "sentences": count,
            "seconds": [round(each, 5) for each in seconds],
            "tokens_per_second": round(tokens / best),
        }


def host_cost(setting: Setting) -> Iterator[Found]:
    """Microseconds that a sentence costs this machine's host."""
    with torch.inference_mode():
        yield host.measure(16 if setting.is_quick else 1024, 3)


def kernels(setting: Setting) -> Iterator[Found]:
    """The kernels that take a round's time."""
    network = setting.network()
    yield ours.busy_share(network, TOKENS, setting.device, count=max(setting.counts) // 4 or 1)


def updates(setting: Setting) -> Iterator[Found]:
    """Updates a second of a training."""
    yield from training.measure(setting.device, is_quick=setting.is_quick)


PARTS: dict[str, Callable[[Setting], Iterator[Found]]] = {
    "versions": versions,
    "widening_product": widening_product,
    "operations": operations,
    "steps": steps,
    "rounds": rounds,
    "kernels": kernels,
    "right": right,
    "updates": updates,
    "host": host_cost,
}


def run(setting: Setting, report: Found, write: Callable[[], None], *, seconds: float) -> None:
    """Every part in order; after each row the report is written. What fails says so in its place.

    Args:
        setting: Where and how large.
        report: Rows go into it by their part.
        write: Writes it.
        seconds: After which no further part begins.
    """
    started = time.monotonic()
    for name, part in PARTS.items():
        rows = report[name] = []
        try:
            if time.monotonic() - started > seconds:
                rows.append({"error": "no time left"})
                continue
            for row in part(setting):
                rows.append(row)
                print(name, json.dumps(row), flush=True)
                write()
        except Exception as error:  # whatever it is, the next part is worth its time
            traceback.print_exc()
            rows.append({"error": f"{type(error).__name__}: {error}"[:500]})
        finally:
            write()


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(description="Spend the first minutes on a device well.")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--quick", action="store_true", help="a small network, few sentences")
    parser.add_argument("--seconds", type=float, default=240.0, help="no part begins after these")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results")
    arguments = parser.parse_args()
    use_unplanned_attention()
    torch.set_num_threads(1)
    now = datetime.now(UTC)
    report: Found = {
        "benchmark": "gpu-first-run",
        "command": describe_command("benchmarks.gpu.first_run", sys.argv[1:]),
        "time": now.isoformat(timespec="seconds"),
        "machine": describe_machine(),
    }
    path = arguments.output / f"gpu-first-run-{now:%Y%m%d-%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    setting = Setting(device=torch.device(arguments.device), is_quick=arguments.quick)
    run(setting, report, partial(_write, path, report), seconds=arguments.seconds)
    print(path)
    return 0


def _write(path: Path, report: Found) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)


if __name__ == "__main__":
    sys.exit(main())
