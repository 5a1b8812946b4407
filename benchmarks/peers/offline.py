"""Offline: how many target tokens a second, from token ids to token ids.

Owns the points and the rounds; settings are chosen in `benchmarks.peers.tuning`. Rivals stay in
their own processes for a whole checkpoint and take turns within each round; while one runs, the
processor time of the others is watched.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.peers.engines import Settings
from benchmarks.peers.plan import OfflinePlan
from benchmarks.peers.results import Result
from benchmarks.peers.rivals import (
    CTRANSLATE2,
    DRAGOMAN_FLOAT32,
    DRAGOMAN_INT8,
    HUGGINGFACE,
    Rival,
    Spec,
    Timing,
    all_specs,
    running,
)
from benchmarks.peers.rounds import Budget, median, turns
from benchmarks.peers.text import TextTask, read_lines
from benchmarks.peers.tuning import choose, file_candidates, small_candidates, warm_up_work
from benchmarks.peers.work import Work, equal_work, file_work
from model.config import StoppingRule

EXACT_SUFFIX = ", exact search"
_SETTLE_SECONDS = 0.05
_TUNING_TARGET_LENGTH = 12
MIN_ROUNDS = 3
"""Rounds of the two that every mark compares, however long they take: a median needs as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A rival as it takes part in a point.

    Attributes:
        name: In the results.
        spec: Whose process answers.
        candidates: Settings to choose from.
        max_rounds: Rounds it takes part in.
        min_rounds: Those of them that the budget does not cut.
        stopping: When our search stops; the others have their own rule.
        is_warmed_by_sample: All of the work would take too long to be done once more.
        num_sentences: Evenly chosen from the work, for who would need too long; None for all.
    """

    name: str
    spec: Spec
    candidates: Sequence[Settings]
    max_rounds: int
    min_rounds: int = 1
    stopping: StoppingRule = "first"
    is_warmed_by_sample: bool = False
    num_sentences: int | None = None

    @property
    def is_compared(self) -> bool:
        """Whether a quotient is made of it, so that its rounds are not cut."""
        return self.min_rounds >= MIN_ROUNDS

    def part_of(self, work: Work) -> Work:
        """What this rival is given of a point's work."""
        chosen = work if self.num_sentences is None else work.sample(self.num_sentences)
        return replace(chosen, stopping=self.stopping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One thing that all rivals are measured with.

    Attributes:
        workload: "equal", "file" or "text".
        facts: More about it, for the results.
        sample: What settings are chosen with and slow rivals warmed up.
        group: The same for CTranslate2, where that has to get sentences of one length a call: a
            sample of all lengths would leave nothing of its batches (`Work.tuning_group`).
        task: For BLEU, where the text is real.
    """

    workload: str
    facts: Mapping[str, object]
    work: Work
    sample: Work
    entries: Sequence[Entry]
    group: Work | None = None
    task: TextTask | None = None

    def sample_for(self, spec: Spec) -> Work:
        """What a rival's settings are chosen with."""
        return self.group if self.group is not None and spec.name == CTRANSLATE2 else self.sample


def measure(models: Mapping[str, Path], plan: OfflinePlan, num_threads: int) -> list[Result]:
    """All points, the random networks' small ones first, the long file last.

    Args:
        models: Directories of `benchmarks.peers.models`: by vocabulary, and "bundled".
        plan: How much.
        num_threads: Of every rival.
    """
    budget = Budget.of(plan.budget_seconds, time.perf_counter)
    specs = [
        spec for spec in all_specs(num_threads) if plan.has_float32 or spec.compute_type == "int8"
    ]
    results: list[Result] = []
    stages = [
        *((str(v), small_points(plan, specs, v), 0.2) for v in reversed(plan.vocabularies)),
        ("bundled", text_points(plan, specs, models["bundled"] / "checkpoint"), 0.25),
        *(
            (str(vocabulary), file_points(plan, specs, vocabulary), 1 / num_left)
            for vocabulary, num_left in zip(
                plan.vocabularies, range(len(plan.vocabularies), 0, -1), strict=True
            )
        ),
    ]
    for name, points, share in stages:
        used = {entry.spec.name for point in points for entry in point.entries}
        chosen = [spec for spec in specs if spec.name in used]
        with running(chosen, models=models[name], num_threads=num_threads) as rivals:
            part = budget.part(share)
            for number, point in enumerate(points):
                left = part.part(1 / (len(points) - number))
                results.append(measure_point(point, rivals, left, first=len(results)))
    return results


def small_points(plan: OfflinePlan, specs: Sequence[Spec], vocabulary: int) -> list[Point]:
    """A few sentences of forced lengths, beam 4 and greedy."""
    points = []
    for beam_size in (4, 1):
        for count in plan.counts:
            work = equal_work(
                count,
                vocab_size=vocabulary,
                beam_size=beam_size,
                target_length=plan.target_length,
            )
            entries = [
                Entry(
                    name=spec.name,
                    spec=spec,
                    candidates=small_candidates(spec, count),
                    max_rounds=plan.max_slow_rounds if _is_slow(spec) else plan.max_rounds,
                    min_rounds=_min_rounds(spec),
                    is_warmed_by_sample=_is_slow(spec),
                )
                for spec in specs
            ]
            sample = work.shortened(min(_TUNING_TARGET_LENGTH, plan.target_length))
            facts = {"vocabulary": vocabulary, "target_length": plan.target_length}
            points.append(
                Point(workload="equal", facts=facts, work=work, sample=sample, entries=entries)
            )
    return points


def file_points(plan: OfflinePlan, specs: Sequence[Spec], vocabulary: int) -> list[Point]:
    """A whole file of random sentences of mixed lengths, without Hugging Face."""
    points = []
    for beam_size in (4, 1):
        work = file_work(plan.num_file_sentences, vocab_size=vocabulary, beam_size=beam_size)
        points.append(
            Point(
                workload="file",
                facts={"vocabulary": vocabulary},
                work=work,
                sample=work.sample(plan.num_sample_sentences),
                group=work.tuning_group(plan.num_group_sentences),
                entries=[
                    Entry(
                        name=spec.name,
                        spec=spec,
                        candidates=file_candidates(spec),
                        max_rounds=1 if spec.name == DRAGOMAN_FLOAT32 else plan.max_file_rounds,
                        min_rounds=_min_rounds(spec),
                        is_warmed_by_sample=True,
                        num_sentences=(
                            plan.num_slow_file_sentences if spec.name == DRAGOMAN_FLOAT32 else None
                        ),
                    )
                    for spec in specs
                    if not _is_slow(spec)
                ],
            )
        )
    return points


def text_points(plan: OfflinePlan, specs: Sequence[Spec], checkpoint: Path) -> list[Point]:
    """Real text through the bundled checkpoint, with BLEU where there are references."""
    lines = read_lines(plan.num_text_lines)
    task = TextTask(checkpoint, lines)
    points = []
    for beam_size in (4, 1):
        work = task.work(beam_size)
        points.append(
            Point(
                workload="text",
                facts={"text": lines.name, "num_lines": len(lines.sources)},
                work=work,
                sample=work.sample(min(plan.num_sample_sentences, len(work.sources))),
                group=work.tuning_group(plan.num_group_sentences),
                entries=list(_text_entries(plan, specs, beam_size)),
                task=task,
            )
        )
    return points


def _text_entries(plan: OfflinePlan, specs: Sequence[Spec], beam_size: int) -> Iterator[Entry]:
    """Everybody but Hugging Face; our int8 also with the search that is our default."""
    for spec in specs:
        if _is_slow(spec):
            continue
        entry = Entry(
            name=spec.name,
            spec=spec,
            candidates=file_candidates(spec),
            max_rounds=1 if spec.name == DRAGOMAN_FLOAT32 else plan.max_file_rounds,
            min_rounds=_min_rounds(spec),
            is_warmed_by_sample=True,
        )
        yield entry
        if spec.name == DRAGOMAN_INT8 and beam_size > 1:
            yield replace(entry, name=spec.name + EXACT_SUFFIX, stopping="exact")


def _is_slow(spec: Spec) -> bool:
    return spec.name == HUGGINGFACE


def _min_rounds(spec: Spec) -> int:
    return MIN_ROUNDS if spec.name in {DRAGOMAN_INT8, CTRANSLATE2} else 1


def measure_point(
    point: Point, rivals: Mapping[str, Rival], budget: Budget, *, first: int = 0
) -> Result:
    """Choose settings, warm up, then rounds until they are enough or the time is over.

    Args:
        point: What is measured.
        rivals: Their processes, by name.
        budget: The time for rounds that may be left out.
        first: Which rival begins the first round.
    """
    settings, sweeps = {}, {}
    for entry in point.entries:
        rival = rivals[entry.spec.name]
        sample = replace(point.sample_for(entry.spec), stopping=entry.stopping)
        chosen, sweeps[entry.name] = choose(rival, entry.candidates, sample, time.perf_counter)
        settings[entry.name] = chosen
        # What was tried last may have evicted what was chosen.
        warm = warm_up_work(sample) if entry.is_warmed_by_sample else entry.part_of(point.work)
        rival.translate(warm, chosen)
    runs: dict[str, list[dict[str, object]]] = {entry.name: [] for entry in point.entries}
    bleu: dict[str, object] = {}
    last_seconds = 0.0
    is_affordable = True
    for number in range(max(entry.max_rounds for entry in point.entries)):
        is_affordable = is_affordable and (number == 0 or budget.allows(last_seconds))
        taking_part = taking_part_in(number, point.entries, is_affordable=is_affordable)
        started = time.perf_counter()
        compared = [entry for entry in taking_part if entry.is_compared]
        others = [entry for entry in taking_part if not entry.is_compared]
        for entry in turns(compared, others, first + number):
            timing, run = _timed(entry, point, settings[entry.name], rivals)
            runs[entry.name].append({"round": number, **run})
            if point.task is not None and number == 0:
                assert timing.targets is not None
                bleu[entry.name] = point.task.bleu(timing.targets)
        last_seconds = time.perf_counter() - started
    found = {
        name: summarise(runs[name])
        | {"settings": settings[name], "tuning": sweeps[name], "bleu": bleu.get(name)}
        for name in runs
    }
    _say(point, found)
    return {
        "workload": point.workload,
        **point.facts,
        "beam_size": point.work.beam_size,
        "num_sentences": len(point.work.sources),
        "num_source_tokens": sum(map(len, point.work.sources)),
        "num_lengths": len(set(point.work.max_lengths)),
        "rivals": found,
    }


def taking_part_in(number: int, entries: Sequence[Entry], *, is_affordable: bool) -> list[Entry]:
    """Who takes part in a round, counted from 0; those that are compared, whatever it costs."""
    return [
        entry
        for entry in entries
        if number < (entry.max_rounds if is_affordable else min(entry.min_rounds, entry.max_rounds))
    ]


def _timed(
    entry: Entry, point: Point, settings: Settings, rivals: Mapping[str, Rival]
) -> tuple[Timing, dict[str, object]]:
    """One run, and the processor time that everybody used meanwhile."""
    time.sleep(_SETTLE_SECONDS)
    before = {name: rival.cpu_seconds() for name, rival in rivals.items()}
    work = entry.part_of(point.work)
    timing = rivals[entry.spec.name].translate(work, settings, with_targets=point.task is not None)
    used = {name: rival.cpu_seconds() - before[name] for name, rival in rivals.items()}
    own = used.pop(entry.spec.name)
    return timing, {
        "seconds": round(timing.seconds, 5),
        "num_sentences": len(work.sources),
        "num_tokens": timing.num_tokens,
        "cpu_seconds": round(own, 3),
        "idle_cpu_seconds": round(max(used.values(), default=0.0), 3),
    }


def summarise(runs: Sequence[Mapping[str, object]]) -> Result:
    """Medians of the rounds, and the rounds."""
    seconds = median([float(str(run["seconds"])) for run in runs])
    num_tokens = int(str(runs[0]["num_tokens"]))
    return {
        "num_sentences": runs[0]["num_sentences"],
        "tokens_per_second": round(num_tokens / seconds, 2),
        "median_seconds": round(seconds, 5),
        "num_tokens": num_tokens,
        "rounds": [dict(run) for run in runs],
    }


def _say(point: Point, found: Mapping[str, Result]) -> None:
    speeds = ", ".join(f"{name} {value['tokens_per_second']:.0f}" for name, value in found.items())
    place = point.facts.get("vocabulary", point.facts.get("text"))
    print(
        f"{point.workload} {place}, beam {point.work.beam_size},"
        f" {len(point.work.sources)} sentences, tokens/s: {speeds}",
        flush=True,
    )
