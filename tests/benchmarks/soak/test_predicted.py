"""People's traffic simulated too: what is compared, if a server is a simulation."""

from dataclasses import asdict, replace

import pytest

from benchmarks.capacity.load import Level, Sent
from benchmarks.replicas.simulation import Outcome, Plan, simulate
from benchmarks.replicas.steps import Sentence, StepTimes
from benchmarks.soak.predicted import Loads, compared, comparison_table, figures_of, plan_of
from benchmarks.soak.shape import played, recorded_requests

TIMES = StepTimes(
    num_threads=1,
    step_seconds=((4, 0.0001), (128, 0.002)),
    encode_seconds=0.0001,
    sentences=(),
)
ONE, MANY = (
    Sentence(num_source_tokens=9, num_steps=15),
    Sentence(num_source_tokens=14, num_steps=25),
)
ASKED = [(ONE,), (MANY,), (ONE, MANY, ONE), (MANY,) * 8]
REAL = Plan(
    num_replicas=1,
    num_cores=2,
    front_seconds=0.0008,
    client_seconds=0.0002,
    wake_seconds=0.0002,
    client_wake_seconds=0.0001,
    engine_wake_seconds=0.0003,
    turn_seconds=0.00003,
    segment_seconds=0.0001,
    delay_seconds=0.0001,
    cold_seconds=0.01,
)


def _level(found: Outcome, client_ms: float) -> Level:
    each_ms = 1000 * found.seconds / found.num_requests
    return Level(
        num_requests=found.num_requests,
        num_errors=0,
        requests_per_second=found.num_requests / found.seconds,
        p50_ms=1000 * found.p50_seconds,
        p99_ms=1000 * found.p99_seconds,
        engine_ms=sum(found.replica_shares) * each_ms,
        front_ms=found.front_share * each_ms,
        owner_ms=0.0,
        client_ms=client_ms,
    )


def _served(rate: float, seed: int) -> tuple[Level, list[Sent], Outcome]:
    """What a server that is a simulation makes of arrivals."""
    recorded = recorded_requests()
    asked = played(recorded, [1], rate=rate, seconds=20, seed=seed)
    arrivals = [at for at, _ in asked]
    texts = [place * 7 % len(ASKED) for place in range(len(arrivals))]
    found = simulate(REAL, TIMES, arrivals=arrivals, asked=[ASKED[text] for text in texts])
    sent = [
        Sent(seconds=at, text=text, latency_seconds=took)
        for at, text, took in zip(arrivals, texts, found.latencies, strict=True)
    ]
    client_ms = 1000 * (
        REAL.client_seconds + found.client_wakes_a_request * REAL.client_wake_seconds
    )
    return _level(found, client_ms), sent, found


def _loads() -> Loads:
    alone, full = (
        simulate(replace(REAL, num_clients=number), TIMES, asked=ASKED) for number in (1, 64)
    )
    seldom, seldom_sent, _ = _served(20, seed=1)
    traced, sent, found = _served(150, seed=2)
    return Loads(
        seldom=seldom,
        seldom_sent=seldom_sent,
        alone=_level(alone, 1000 * REAL.client_seconds),
        full=_level(full, 1000 * REAL.client_seconds),
        traced=traced,
        sent=sent,
        steps=(1000.0, 1000 * found.mean_rows),
        step_seconds=0.5,
    )


@pytest.mark.replicas
def test_a_server_that_is_a_simulation_is_predicted_as_it_is() -> None:
    loads = _loads()
    plan = plan_of(loads, TIMES, ASKED, num_clients=64)
    found = simulate(
        plan,
        TIMES,
        arrivals=[one.seconds for one in loads.sent],
        asked=[ASKED[one.text] for one in loads.sent],
    )
    factors = compared(loads, found)["factors"]
    assert isinstance(factors, dict)
    assert factors == pytest.approx(dict.fromkeys(factors, 1.0), rel=0.1)


@pytest.mark.replicas
def test_the_comparison_has_every_figure_and_the_parts_of_the_traced() -> None:
    loads = _loads()
    found = simulate(
        REAL,
        TIMES,
        arrivals=[one.seconds for one in loads.sent],
        asked=[ASKED[one.text] for one in loads.sent],
    )
    figures = compared(loads, found)
    assert figures["simulated"] == asdict(figures_of(found))
    parts = figures["parts"]
    assert isinstance(parts, list)
    assert all(part["p50_ms"] == part["simulated_p50_ms"] for part in parts)
    assert max(parts, key=lambda part: part["requests_per_second"]) in parts[1:3]
    lines = comparison_table(figures).splitlines()
    assert len(lines) == 2 + 6 + 3 + 4
    assert lines[2].startswith("| requests_per_second | ")
