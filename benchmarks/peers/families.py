"""Networks of other families, with random weights: speed and memory against their own engines.

Owns which rivals take part and what they are given. Everything is measured as base size is
(`benchmarks.peers.offline`, `benchmarks.peers.memory`): a few sentences of forced lengths, a file
of mixed ones, and a process's growth. Where CTranslate2 does not have a network's decoder cell, it
runs one of the same size with self-attention; Marian runs the network itself.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.peers import memory
from benchmarks.peers.engines import Settings
from benchmarks.peers.models import TWINS
from benchmarks.peers.offline import Entry, Point, measure_point
from benchmarks.peers.plan import FamilyPlan
from benchmarks.peers.results import Result
from benchmarks.peers.rivals import (
    CTRANSLATE2,
    DRAGOMAN_INT8,
    MARIAN,
    Spec,
    all_specs,
    marian_spec,
    running,
)
from benchmarks.peers.rounds import Budget
from benchmarks.peers.tuning import file_candidates, small_candidates
from benchmarks.peers.work import equal_work, file_work
from benchmarks.random_checkpoint import SHAPES

_TUNING_TARGET_LENGTH = 12
_NUM_MEMORY_ROUNDS = 3
_NUM_MEMORY_SENTENCES = 32
_ROUNDS = 3


def measure(
    models: Mapping[str, Path],
    plans: Sequence[FamilyPlan],
    num_threads: int,
    *,
    marian: str | None,
) -> list[Result]:
    """One result a family, with its points and its memory.

    Args:
        models: Directories of `benchmarks.peers.models`, by shape.
        plans: How much, of each family.
        num_threads: Of every rival.
        marian: An interpreter with pymarian; None leaves Marian out.
    """
    return [_measure(models[plan.shape], plan, num_threads, marian=marian) for plan in plans]


def _measure(models: Path, plan: FamilyPlan, num_threads: int, *, marian: str | None) -> Result:
    specs = taking_part(plan, num_threads, marian=marian)
    budget = Budget.of(plan.budget_seconds, time.perf_counter)
    points = list(family_points(plan, specs))
    with running(specs, models=models, num_threads=num_threads) as rivals:
        measured = [
            measure_point(point, rivals, budget.part(1 / (len(points) - number)), first=number)
            for number, point in enumerate(points)
        ]
    return {
        "family": plan.shape,
        "ctranslate2_shape": TWINS.get(plan.shape, plan.shape),
        "vocabulary": SHAPES[plan.shape].vocab_size,
        "points": measured,
        "memory": _memory(models, plan, specs, num_threads),
    }


def taking_part(plan: FamilyPlan, num_threads: int, *, marian: str | None) -> list[Spec]:
    """Our int8, CTranslate2, and Marian where it runs the family and is there."""
    specs = [one for one in all_specs(num_threads) if one.name in {DRAGOMAN_INT8, CTRANSLATE2}]
    return [*specs, marian_spec(marian)] if plan.has_marian and marian is not None else specs


def family_points(plan: FamilyPlan, specs: Sequence[Spec]) -> Iterator[Point]:
    """A few sentences at once, then the file; beam 4 and greedy."""
    vocabulary = SHAPES[plan.shape].vocab_size
    facts = {"family": plan.shape, "vocabulary": vocabulary}
    for beam_size in (4, 1):
        for count in plan.counts:
            work = equal_work(
                count,
                vocab_size=vocabulary,
                beam_size=beam_size,
                target_length=plan.target_length,
            )
            yield Point(
                workload="equal",
                facts=facts | {"target_length": plan.target_length},
                work=work,
                sample=work.shortened(min(_TUNING_TARGET_LENGTH, plan.target_length)),
                entries=_entries(plan, specs, partial(_few, count=count)),
            )
        work = file_work(plan.num_file_sentences, vocab_size=vocabulary, beam_size=beam_size)
        num = plan.num_file_sentences
        yield Point(
            workload="file",
            facts=facts,
            work=work,
            sample=work.sample(min(128, num)),
            group=work.tuning_group(plan.num_group_sentences),
            entries=_entries(plan, specs, _many),
        )


def _entries(
    plan: FamilyPlan, specs: Sequence[Spec], candidates: Callable[[Spec], list[Settings]]
) -> list[Entry]:
    return [
        Entry(
            name=spec.name,
            spec=spec,
            candidates=candidates(spec),
            max_rounds=plan.max_rounds,
            min_rounds=min(_ROUNDS, plan.max_rounds),
            is_warmed_by_sample=True,
        )
        for spec in specs
    ]


def _few(spec: Spec, *, count: int) -> list[Settings]:
    """Marian's threads work on a batch each, so it may have all in one, or one a thread."""
    if spec.name != MARIAN:
        return small_candidates(spec, count)
    return [{**spec.settings, "mini_batch": size} for size in {count, -(-count // 2)}]


def _many(spec: Spec) -> list[Settings]:
    if spec.name != MARIAN:
        return file_candidates(spec)
    return [{**spec.settings, "mini_batch": size, "maxi_batch": 100} for size in (16, 32, 64)]


def _memory(
    models: Path, plan: FamilyPlan, specs: Sequence[Spec], num_threads: int
) -> dict[str, Result]:
    """How much a process of each rival grows; see `benchmarks.peers.memory`."""
    work = equal_work(
        _NUM_MEMORY_SENTENCES,
        vocab_size=SHAPES[plan.shape].vocab_size,
        beam_size=4,
        target_length=plan.target_length,
    )
    num_rounds = min(_NUM_MEMORY_ROUNDS, plan.max_rounds)
    return memory.measure_specs(specs, models, work, num_rounds, num_threads)
