"""Memory: how much a process grows when it loads a network and works with it.

Owns the order of looks at a fresh process: libraries imported, network loaded, work done.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.peers.plan import MemoryPlan
from benchmarks.peers.results import Result
from benchmarks.peers.rivals import Rival, Spec, all_specs, running
from benchmarks.peers.rounds import median
from benchmarks.peers.work import Work, equal_work

_NUM_RUNS = 2
SIZES = ("empty_bytes", "loaded_bytes", "peak_bytes")


def measure(models: Mapping[str, Path], plan: MemoryPlan, num_threads: int) -> dict[str, Result]:
    """Of everyone, with a network of base size; see `measure_specs`."""
    work = equal_work(
        plan.num_sentences,
        vocab_size=plan.vocabulary,
        beam_size=4,
        target_length=plan.target_length,
    )
    directory = models[str(plan.vocabulary)]
    return measure_specs(all_specs(num_threads), directory, work, plan.num_rounds, num_threads)


def measure_specs(
    specs: Sequence[Spec], models: Path, work: Work, num_rounds: int, num_threads: int
) -> dict[str, Result]:
    """Medians and raw rounds by rival; every round is a process of its own."""
    found: dict[str, Result] = {}
    for spec in specs:
        rounds = []
        for _ in range(num_rounds):
            with running([spec], models=models, num_threads=num_threads, is_loaded=False) as rivals:
                rounds.append(look(rivals[spec.name], work))
        found[spec.name] = summarise(rounds)
        grown = found[spec.name]
        print(
            f"{spec.name}: grows by {grown['loaded_growth_bytes'] / 2**20:.0f} MiB loaded,"
            f" {grown['peak_growth_bytes'] / 2**20:.0f} MiB at peak",
            flush=True,
        )
    return found


def look(rival: Rival, work: Work) -> dict[str, int]:
    """Sizes of one process through its life; the peak is that of all of it, loading included."""
    empty = rival.ask("memory")
    rival.ask("load", settings=rival.spec.settings)
    loaded = rival.ask("memory")
    for _ in range(_NUM_RUNS):
        rival.translate(work, rival.spec.settings)
    peak = rival.ask("memory")
    sizes = (empty["resident_bytes"], loaded["resident_bytes"], peak["peak_bytes"])
    return {name: int(str(size)) for name, size in zip(SIZES, sizes, strict=True)}


def summarise(rounds: list[dict[str, int]]) -> Result:
    """Medians, and growth above the empty process."""
    sizes = {name: int(median([found[name] for found in rounds])) for name in SIZES}
    return {
        **sizes,
        "loaded_growth_bytes": sizes["loaded_bytes"] - sizes["empty_bytes"],
        "peak_growth_bytes": sizes["peak_bytes"] - sizes["empty_bytes"],
        "rounds": rounds,
    }
