"""The marks: what the latest results reach, one line each.

Owns the targets and the arithmetic. Reads results, measures nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.peers.results import Result
from benchmarks.peers.rivals import CTRANSLATE2, DRAGOMAN_FLOAT32, DRAGOMAN_INT8
from benchmarks.peers.rounds import median
from benchmarks.peers.work import LEAST_MEAN_GROUP, num_nearest_lengths

SPEEDUP = 2.0
"""Of base size, however many sentences there are."""
TEXT_SPEEDUP = 1.6
"""Of real text through the small bundled network."""
FAMILY_SMALL_SPEEDUP, FAMILY_LARGE_SPEEDUP = 2.0, 1.6
"""Of other families, by whether there are fewer sentences than `LARGE_COUNT`."""
HELD_SPEEDUP = 1.5
"""Where both sides are held to an older instruction set."""
LARGE_COUNT = 32
SERVED_CLIENTS, SERVED_SPEEDUP, SERVED_LATENCY = 32, 1.8, 0.5
MEMORY_RATIO = 1.0
BLEU_DIFFERENCE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One number and what it should be.

    Attributes:
        value: Ours by theirs, or a difference; None where it was not measured.
        target: At least this, or at most.
        is_minimum: Which of the two.
    """

    name: str
    value: float | None
    target: float
    is_minimum: bool
    unit: str = "×"

    @property
    def is_reached(self) -> bool:
        """Whether it was measured and is good enough."""
        if self.value is None:
            return False
        return self.value >= self.target if self.is_minimum else self.value <= self.target

    def __str__(self) -> str:
        bound = f"{'at least' if self.is_minimum else 'at most'} {self.target:g}{self.unit}"
        if self.value is None:
            return f"unmeasured  {self.name}: {bound}"
        verdict = "reached   " if self.is_reached else "missed    "
        return f"{verdict}  {self.name}: {self.value:.2f}{self.unit}, {bound}"


def all_marks(results: Mapping[str, Result]) -> list[Mark]:
    """Of the latest results; a benchmark that has none is one unmeasured mark.

    Args:
        results: By benchmark.
    """
    kinds = {
        "offline": offline_marks,
        "served": served_marks,
        "memory": memory_marks,
        "families": family_marks,
    }
    marks: list[Mark] = []
    for name, make in kinds.items():
        if name in results:
            marks += make(results[name])
        else:
            marks.append(Mark(name=f"{name}: no results", value=None, target=1.0, is_minimum=True))
    return marks


def ratio(value: float | None, other: float | None) -> float | None:
    """The quotient, where there is one."""
    return value / other if value is not None and other else None


def speedup(point: Result, name: str, other: str) -> float | None:
    """How much faster a rival is than another: the median of the rounds that both were in.

    The two follow each other within a round, so a machine that changes its speed between rounds, as
    shared ones do, moves their quotient little; the quotient of two medians may come from
    different rounds.
    """
    ours, theirs = (_rounds(point, rival) for rival in (name, other))
    both = sorted(ours.keys() & theirs.keys())
    quotients = [_tokens_per_second(ours[n]) / _tokens_per_second(theirs[n]) for n in both]
    return median(quotients) if quotients else None


def _rounds(point: Result, name: str) -> dict[int, Result]:
    runs = point["rivals"].get(name, {}).get("rounds", [])
    # Older results do not say the round; nobody had missed one then.
    return {run.get("round", place): run for place, run in enumerate(runs)}


def _tokens_per_second(run: Result) -> float:
    return float(run["num_tokens"]) / float(run["seconds"])


def point_name(point: Mapping[str, object]) -> str:
    """What a point is called in a line."""
    search = "greedy" if point["beam_size"] == 1 else f"beam {point['beam_size']}"
    if point["workload"] == "text":
        return f"real text, {search}, {point['num_sentences']} segments"
    kind = "file of " if point["workload"] == "file" else ""
    plural = "" if point["num_sentences"] == 1 else "s"
    return (
        f"vocabulary {point['vocabulary']}, {search}, {kind}{point['num_sentences']}"
        f" sentence{plural}"
    )


def has_small_groups(point: Mapping[str, Any]) -> bool:
    """Whether a file's answers have so many lengths that CTranslate2's calls are no batches."""
    if point["workload"] != "file":
        return False
    number = point["num_sentences"]
    # Older results do not say how many; every sentence had the nearest then.
    num_lengths = point.get("num_lengths") or num_nearest_lengths(number)
    return bool(number / num_lengths < min(number, LEAST_MEAN_GROUP))


def offline_marks(result: Result) -> list[Mark]:
    """Speed by CTranslate2's at its best, then what int8 costs in BLEU."""
    points = result["points"]
    return [*_speed_marks(points, CTRANSLATE2, _target), *_bleu_marks(points)]


def held_marks(result: Result) -> list[Mark]:
    """Speed by CTranslate2's, both held to an instruction set."""
    return list(_speed_marks(result["points"], CTRANSLATE2, lambda _point: HELD_SPEEDUP))


def _target(point: Result) -> float:
    return TEXT_SPEEDUP if point["workload"] == "text" else SPEEDUP


def _family_target(point: Result) -> float:
    is_small = point["workload"] == "equal" and point["num_sentences"] < LARGE_COUNT
    return FAMILY_SMALL_SPEEDUP if is_small else FAMILY_LARGE_SPEEDUP


def _speed_marks(
    points: Sequence[Result], rival: str, target: Callable[[Result], float], *, prefix: str = ""
) -> Iterator[Mark]:
    for point in points:
        yield Mark(
            name=f"{prefix}tokens/s, {point_name(point)}",
            value=speedup(point, DRAGOMAN_INT8, rival),
            target=target(point),
            is_minimum=True,
        )


def _bleu_marks(points: Sequence[Result]) -> Iterator[Mark]:
    """int8 against float32, both ours; also better counts as different."""
    for point in points:
        if point["workload"] != "text":
            continue
        if DRAGOMAN_FLOAT32 not in point["rivals"]:
            continue  # a run with --int8
        found = [point["rivals"][name]["bleu"] for name in (DRAGOMAN_INT8, DRAGOMAN_FLOAT32)]
        scores = [float(bleu["score"]) for bleu in found if bleu is not None]
        difference = abs(scores[0] - scores[1]) if len(scores) == len(found) else None
        yield Mark(
            name=f"BLEU of int8 against float32, {point_name(point)}",
            value=difference,
            target=BLEU_DIFFERENCE,
            is_minimum=False,
            unit="",
        )


def served_marks(result: Result) -> list[Mark]:
    """Throughput and p99 of 32 clients, each by CTranslate2's."""
    marks = []
    for found in result["checkpoints"]:
        levels = {
            level["rival"]: level
            for level in found["closed"]
            if level["num_clients"] == SERVED_CLIENTS
        }
        ours, theirs = levels.get(DRAGOMAN_INT8, {}), levels.get(CTRANSLATE2, {})
        place = f"{SERVED_CLIENTS} clients, {found['checkpoint']}"
        speed = "sentences_per_second"
        latencies = [level.get("latency_seconds", {}).get("p99") for level in (ours, theirs)]
        marks += [
            Mark(
                name=f"served sentences/s, {place}",
                value=ratio(ours.get(speed), theirs.get(speed)),
                target=SERVED_SPEEDUP,
                is_minimum=True,
            ),
            Mark(
                name=f"served p99, {place}",
                value=ratio(*latencies),
                target=SERVED_LATENCY,
                is_minimum=False,
            ),
        ]
    return marks


def family_marks(result: Result) -> list[Mark]:
    """Speed of every family by its rivals' at their best, and memory by CTranslate2's.

    Without files of small groups (`has_small_groups`), which were unfair to CTranslate2.
    """
    marks: list[Mark] = []
    for found in result["families"]:
        points = [point for point in found["points"] if not has_small_groups(point)]
        for rival in found["memory"]:
            if rival != DRAGOMAN_INT8:
                prefix = f"{found['family']} against {rival}: "
                marks += _speed_marks(points, rival, _family_target, prefix=prefix)
        for mark in memory_marks({"rivals": found["memory"]}):
            marks.append(replace(mark, name=f"{found['family']}: {mark.name}"))
    return marks


def memory_marks(result: Result) -> list[Mark]:
    """Growth by CTranslate2's int8, loaded and at peak."""
    ours, theirs = (result["rivals"][name] for name in (DRAGOMAN_INT8, CTRANSLATE2))
    return [
        Mark(
            name=f"growth of resident memory, {when}",
            value=ratio(ours[f"{when}_growth_bytes"], theirs[f"{when}_growth_bytes"]),
            target=MEMORY_RATIO,
            is_minimum=False,
        )
        for when in ("loaded", "peak")
    ]
