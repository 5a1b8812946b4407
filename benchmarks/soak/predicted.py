"""The capacity model's simulation against a server: the same requests, measured and simulated.

Step times of an engine of one thread and the steps of every text are measured here first; then a
server with one such engine has seldom requests, one client, and many, which is all that the
simulation is told of it. Then it has an hour of people's traffic in a few minutes
(`benchmarks.soak.shape`).
Every request of that is written down (build/soak/predicted.csv): when it was sent, its text, how
long its answer took in both. The simulation gets when they were sent and what is in them, and has
to find the rest.

Mark: every request is answered with a translation. How near the simulation is, is a figure; a
factor of 1 is right.
"""

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from random import Random

from benchmarks.capacity.calibration import COLD_SECONDS, SELDOM_SHARE, Load, calibrated
from benchmarks.capacity.load import (
    Level,
    Processes,
    Sent,
    arrival_times,
    arriving_requests,
    waiting_clients,
)
from benchmarks.replicas.simulation import Outcome as Simulated
from benchmarks.replicas.simulation import Plan as SimulationPlan
from benchmarks.replicas.simulation import simulate
from benchmarks.replicas.steps import Sentence, StepTimes, measure_steps, sentences_of
from benchmarks.soak.outcome import Outcome, quantile
from benchmarks.soak.plan import Plan
from benchmarks.soak.server import ONE_BUNDLED, ROOT, serving
from benchmarks.soak.shape import played, recorded_requests, text_lengths, texts_of_lengths
from benchmarks.soak.traffic import Client
from model.system.cores import usable_cores

NUM_TEXTS = 500
SHARE = 0.55
"""Of the capacity, in the mean; in the busiest minutes it is half as much more again."""
_NUM_PARTS = 4
_MAX_PENDING_SEGMENTS = 8192
"""All that the clients of the full load may ask at once: 64 texts of up to a hundred sentences."""
_RECORD = ROOT / "build" / "soak" / "predicted.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is compared.

    Attributes:
        requests_per_second: Answered.
        p50_ms: Of the latencies, from when a request was sent.
        p99_ms: Likewise.
        rows_a_step: Beam rows, in the mean.
        engine_share: Of the time, that the engine was at work.
        front_share: That the front was.
    """

    requests_per_second: float
    p50_ms: float
    p99_ms: float
    rows_a_step: float
    engine_share: float
    front_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """The loads on the server, as they were measured.

    Attributes:
        seldom: With requests that come seldom.
        seldom_sent: These.
        alone: With one client that waits.
        full: With many.
        traced: With the trace.
        sent: Its requests.
        steps: Of the engine meanwhile: their number, and their rows.
        step_seconds: What they took.
    """

    seldom: Level
    seldom_sent: list[Sent]
    alone: Level
    full: Level
    traced: Level
    sent: list[Sent]
    steps: tuple[float, float]
    step_seconds: float


async def run(plan: Plan, folder: Path) -> Outcome:
    """Measure, simulate, compare."""
    lines = (ROOT / "benchmarks" / "sentences.en").read_text(encoding="utf-8").splitlines()
    recorded = recorded_requests()
    lengths = text_lengths(recorded, NUM_TEXTS, seed=1)
    texts = texts_of_lengths(lines, lengths, seed=1)
    asked = sentences_of(ONE_BUNDLED, texts)
    times = measure_steps(ONE_BUNDLED, texts, num_threads=1, seconds_each=plan.step_seconds)
    with serving(
        folder / "predicted.jsonl",
        checkpoint=ONE_BUNDLED,
        log_level="warning",
        device="cpu",
        num_threads=1,
        max_pending_segments=_MAX_PENDING_SEGMENTS,
    ) as served:
        loads = await _loads(
            served.port,
            Processes(served.process.pid),
            texts,
            lambda rate: played(recorded, lengths, rate=rate, seconds=plan.trace_seconds, seed=4),
            plan,
        )
    calibrated_plan = plan_of(loads, times, asked, num_clients=plan.capacity_clients)
    simulated = simulate(
        calibrated_plan,
        times,
        arrivals=[one.seconds for one in loads.sent],
        asked=[asked[one.text] for one in loads.sent],
    )
    _record(loads.sent, simulated)
    figures = {
        **compared(loads, simulated),
        "loads": {
            name: asdict(getattr(loads, name)) for name in ("seldom", "alone", "full", "traced")
        },
        "plan": asdict(calibrated_plan),
        "steps": times.described() | {"sentences": []},
    }
    print(comparison_table(figures), flush=True)
    outcome = Outcome(figures=figures)
    num_errors = sum(
        one.num_errors for one in (loads.seldom, loads.alone, loads.full, loads.traced)
    )
    outcome.expect(holds=not num_errors, otherwise=f"{num_errors} requests failed")
    return outcome


def _record(sent: Sequence[Sent], simulated: Simulated) -> None:
    """Write every request of the trace down."""
    _RECORD.parent.mkdir(parents=True, exist_ok=True)
    with _RECORD.open("w", encoding="utf-8") as file:
        file.write("sent_seconds,text,measured_seconds,simulated_seconds\n")
        for one, own in zip(sent, simulated.latencies, strict=True):
            file.write(f"{one.seconds:.4f},{one.text},{one.latency_seconds:.4f},{own:.4f}\n")


async def _loads(
    port: int,
    processes: Processes,
    texts: Sequence[str],
    trace: Callable[[float], list[tuple[float, int]]],
    plan: Plan,
) -> Loads:
    gc.freeze()  # what is there now is no garbage of the load's
    crowd = partial(waiting_clients, port, processes, texts, number=plan.capacity_clients)
    await crowd(seconds=plan.window_capacity_seconds)
    full = await crowd(seconds=plan.capacity_seconds)
    alone = await waiting_clients(
        port, processes, texts, number=1, seconds=plan.window_capacity_seconds
    )
    rate = full.requests_per_second
    random = Random(2)

    times = arrival_times(SELDOM_SHARE * rate, plan.capacity_seconds, seed=3)
    few = [(one, random.randrange(len(texts))) for one in times]
    seldom, seldom_sent = await arriving_requests(port, processes, few, texts)
    client = Client(port)
    before = await client.metrics()
    traced, sent = await arriving_requests(port, processes, trace(SHARE * rate), texts)
    await asyncio.sleep(1.0)  # the engine tells its counters once a second
    after = await client.metrics()
    client.close()
    spent = {name: after[name] - before.get(name, 0.0) for name in after}
    return Loads(
        seldom=seldom,
        seldom_sent=seldom_sent,
        alone=alone,
        full=full,
        traced=traced,
        sent=sent,
        steps=(spent["step_rows_count"], spent["step_rows_sum"]),
        step_seconds=spent["step_seconds_total"],
    )


def plan_of(
    loads: Loads, times: StepTimes, asked: Sequence[Sequence[Sentence]], *, num_clients: int
) -> SimulationPlan:
    """The plan of the server, by the two ends of its load.

    Args:
        loads: As they were measured.
        times: Of its engine.
        asked: Sentences of each text.
        num_clients: Those that waited at the full end.
    """
    arrivals = [one.seconds for one in loads.seldom_sent]
    sentences = [asked[one.text] for one in loads.seldom_sent]

    def clients(number: int) -> Load:
        return lambda plan: simulate(replace(plan, num_clients=number), times, asked=asked)

    return calibrated(
        SimulationPlan(num_replicas=1, num_cores=usable_cores(), cold_seconds=COLD_SECONDS),
        low=(
            loads.seldom,
            lambda plan: simulate(plan, times, arrivals=arrivals, asked=sentences),
        ),
        full=(loads.full, clients(num_clients)),
        alone=(loads.alone, clients(1)),
    )


def compared(loads: Loads, simulated: Simulated) -> dict[str, object]:
    """The trace as it was measured and as it was simulated, whole and by its parts."""
    traced = loads.traced
    measured = Figures(
        requests_per_second=traced.requests_per_second,
        p50_ms=traced.p50_ms,
        p99_ms=traced.p99_ms,
        rows_a_step=round(loads.steps[1] / max(loads.steps[0], 1.0), 2),
        engine_share=round(traced.engine_ms * traced.requests_per_second / 1000, 3),
        front_share=round(traced.front_ms * traced.requests_per_second / 1000, 3),
    )
    own = figures_of(simulated)
    return {
        "measured": asdict(measured),
        "simulated": asdict(own),
        "factors": _factors(measured, own),
        "parts": _parts(loads.sent, simulated),
        "num_requests": len(loads.sent),
        "sentences_a_request": round(simulated.segments_a_request, 3),
        "mean_step_ms": round(1000 * loads.step_seconds / max(loads.steps[0], 1.0), 4),
    }


def comparison_table(figures: dict[str, object]) -> str:
    """The comparison as docs/scale.md has it: measured / simulated."""
    names = [one.name for one in fields(Figures)]
    both = [figures["measured"], figures["simulated"]]
    lines = ["| | measured | simulated | factor |", "|---|--:|--:|--:|"]
    factors = figures["factors"]
    assert isinstance(factors, dict)
    for name in names:
        values = [one[name] for one in both if isinstance(one, dict)]
        lines.append(f"| {name} | {values[0]} | {values[1]} | {factors[name]} |")
    parts = figures["parts"]
    assert isinstance(parts, list)
    lines += ["", "| requests a second | p50, ms | p99, ms |", "|--:|--:|--:|"]
    for part in parts:
        cells = [f"{part[name]} / {part[f'simulated_{name}']}" for name in ("p50_ms", "p99_ms")]
        lines.append(f"| {part['requests_per_second']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def figures_of(found: Simulated) -> Figures:
    """What a simulation says of them."""
    return Figures(
        requests_per_second=round(found.num_requests / found.seconds, 1),
        p50_ms=round(1000 * found.p50_seconds, 2),
        p99_ms=round(1000 * found.p99_seconds, 2),
        rows_a_step=round(found.mean_rows, 2),
        engine_share=round(found.replica_shares[0], 3),
        front_share=round(found.front_share, 3),
    )


def _factors(measured: Figures, simulated: Figures) -> dict[str, float]:
    real = asdict(measured)
    return {
        name: round(value / max(real[name], 1e-9), 3) for name, value in asdict(simulated).items()
    }


def _parts(sent: Sequence[Sent], simulated: Simulated) -> list[dict[str, float]]:
    """The trace in parts of the same length, each with its own quantiles: (measured, simulated)."""
    seconds = (sent[-1].seconds + 1e-6) / _NUM_PARTS
    parts = []
    for number in range(_NUM_PARTS):
        places = [place for place, one in enumerate(sent) if int(one.seconds / seconds) == number]
        real = [sent[place].latency_seconds for place in places]
        own = [simulated.latencies[place] for place in places]
        parts.append(
            {
                "requests_per_second": round(len(places) / seconds, 1),
                "p50_ms": round(1000 * quantile(real, 0.5), 2),
                "simulated_p50_ms": round(1000 * quantile(own, 0.5), 2),
                "p99_ms": round(1000 * quantile(real, 0.99), 2),
                "simulated_p99_ms": round(1000 * quantile(own, 0.99), 2),
            }
        )
    return parts
