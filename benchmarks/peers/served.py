"""Served: both engines behind HTTP, closed and open loop, and short sentences beside long ones.

Owns the texts, the levels and the rates. Both servers stay up for a whole checkpoint and are asked
in turns; the load generator shares their cores, with both alike.
"""

import asyncio
import random
import string
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.plan import ServedPlan
from benchmarks.peers.results import Result
from benchmarks.peers.rounds import median, rotated
from benchmarks.peers.servers import SERVERS, Server, ServerSettings, candidates, serving
from benchmarks.peers.text import SENTENCES
from benchmarks.peers.traffic import (
    Traffic,
    closed_loop,
    open_loop,
    poisson_arrivals,
    probe,
    summarise_latencies,
)

SEED = 1
BARE = "bare endpoint, short texts at once"
"""How the server around CTranslate2 is built, for the results; earlier ones do not say it."""
_NUM_RANDOM_TEXTS = 200
# Words of three letters are tokens of the random network, which answers n words with 2 n + 18
# tokens; CTranslate2 has one length for a batch, so all texts of its levels are alike.
_SHORT_WORDS, _PROBE_WORDS, _LONG_WORDS = 8, 2, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What is sent.

    Attributes:
        usual: Of all levels and rates.
        long: Of those who keep the servers busy while `short` is sent.
    """

    usual: tuple[str, ...]
    long: tuple[str, ...]
    short: str


def bundled_texts() -> Texts:
    """Short real sentences; a long one is five of them in one."""
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()
    joined = [
        ", ".join(line.rstrip(".?!") for line in lines[start : start + 5])
        for start in range(0, len(lines), 5)
    ]
    return Texts(usual=tuple(lines), long=tuple(joined), short="Thank you very much.")


def random_texts() -> Texts:
    """Words of three letters for the random network."""
    rng = random.Random(SEED)

    def text(num_words: int) -> str:
        words = ["".join(rng.choices(string.ascii_lowercase, k=3)) for _ in range(num_words)]
        return " ".join(words)

    return Texts(
        usual=tuple(text(_SHORT_WORDS) for _ in range(_NUM_RANDOM_TEXTS)),
        long=tuple(text(_LONG_WORDS) for _ in range(_NUM_RANDOM_TEXTS)),
        short=text(_PROBE_WORDS),
    )


def measure(models: Mapping[str, Path], plan: ServedPlan, num_threads: int) -> list[Result]:
    """One result a checkpoint: the bundled one, and a random one of base size.

    Args:
        models: Directories of `benchmarks.peers.models`: by vocabulary, and "bundled".
        plan: How much.
        num_threads: A network may use at most.
    """
    chosen = [("bundled", bundled_texts())]
    if plan.has_random:
        largest = max((name for name in models if name.isdigit()), key=int)
        chosen.append((largest, random_texts()))
    found = []
    for name, texts in chosen:
        label = f"random base, vocabulary {name}" if name.isdigit() else models[name].name
        result = _measure_checkpoint(models[name], texts, plan, num_threads)
        found.append({"checkpoint": label} | result)
    return found


def parts(plan: ServedPlan) -> list[str]:
    """Names of what is run, as a checkpoint's result has them; a partial run has not all."""
    wanted = {
        "closed": plan.clients,
        "open": plan.open_shares,
        "short_beside_long": plan.probe_seconds,
    }
    return [name for name, is_wanted in wanted.items() if is_wanted]


def _measure_checkpoint(models: Path, texts: Texts, plan: ServedPlan, num_threads: int) -> Result:
    tuning = {
        name: [
            {
                "settings": settings,
                "sentences_per_second": _tried(name, models, settings, texts, plan),
            }
            for settings in candidates(name, num_threads)
        ]
        for name in SERVERS
    }
    settings = {name: best_settings(tried) for name, tried in tuning.items()}
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(name, models, settings[name])) for name in SERVERS]
        closed = _closed(servers, texts, plan)
        capacities = {name: capacity(closed, name) for name in SERVERS}
        opened = _open(servers, texts, plan, capacities)
        probes = _probes(servers, texts, plan) if plan.probe_seconds else []
    return {
        "settings": settings,
        "closed": closed,
        "capacity_per_second": capacities,
        "open": opened,
        "short_beside_long": probes,
        "tuning": tuning,
    }


def best_settings(tried: Sequence[Mapping[str, object]]) -> ServerSettings:
    """Those with the highest throughput."""
    best = max(tried, key=lambda found: float(str(found["sentences_per_second"])))
    settings = best["settings"]
    assert isinstance(settings, Mapping)
    return settings


def capacity(closed: Sequence[Result], name: str) -> float:
    """The highest throughput of any closed-loop level."""
    return max(float(level["sentences_per_second"]) for level in closed if level["rival"] == name)


def open_rates(capacities: Mapping[str, float], shares: Sequence[float]) -> list[tuple[str, float]]:
    """Who is sent how many texts a second, alternating: shares of the smaller capacity go to both.

    The larger capacity's shares go to its owner only, as they would be beyond the other's.
    """
    smaller, larger = sorted(capacities, key=lambda name: capacities[name])
    rates = []
    for share in shares:
        rates += [(name, share * capacities[smaller]) for name in (larger, smaller)]
    return rates + [(larger, share * capacities[larger]) for share in shares]


def _tried(
    name: str, models: Path, settings: ServerSettings, texts: Texts, plan: ServedPlan
) -> float:
    with serving(name, models, settings) as server:
        _warm_up(server, texts)
        traffic = asyncio.run(
            closed_loop(
                server.address,
                texts.usual,
                num_clients=plan.tuning_clients,
                seconds=plan.tuning_seconds,
            )
        )
    print(f"{name} {dict(settings)}: {traffic.per_second:.1f} sentences/s", flush=True)
    return round(traffic.per_second, 2)


def _warm_up(server: Server, texts: Texts) -> None:
    few = texts.usual[:8]
    asyncio.run(open_loop(server.address, few, [0.0] * len(few)))


def _watched(
    server: Server, servers: Sequence[Server], run: Coroutine[object, object, Traffic]
) -> tuple[Traffic, float]:
    """Traffic of one server, and the processor time that the other used meanwhile."""
    before = [other.cpu_seconds() for other in servers if other is not server]
    traffic = asyncio.run(run)
    after = [other.cpu_seconds() for other in servers if other is not server]
    idle = max((b - a for a, b in zip(before, after, strict=True)), default=0.0)
    return traffic, round(idle, 3)


def _closed(servers: Sequence[Server], texts: Texts, plan: ServedPlan) -> list[Result]:
    levels = []
    for num_clients in plan.clients:
        runs: dict[str, list[tuple[Traffic, float]]] = {server.name: [] for server in servers}
        # Of many clients each has to be answered several times within the time.
        seconds = plan.seconds * (2 if num_clients > 64 else 1)
        for number in range(plan.num_rounds):
            for server in rotated(servers, number):
                loop = closed_loop(
                    server.address, texts.usual, num_clients=num_clients, seconds=seconds
                )
                runs[server.name].append(_watched(server, servers, loop))
        for name, found in runs.items():
            levels.append({"rival": name, "num_clients": num_clients} | summarise(found))
            _say(f"{name}, {num_clients} clients", levels[-1])
    return levels


def _open(
    servers: Sequence[Server], texts: Texts, plan: ServedPlan, capacities: Mapping[str, float]
) -> list[Result]:
    by_name = {server.name: server for server in servers}
    results = []
    for name, rate in open_rates(capacities, plan.open_shares):
        server = by_name[name]
        arrivals = poisson_arrivals(rate, plan.open_seconds, seed=SEED)
        run = _watched(server, servers, open_loop(server.address, texts.usual, arrivals))
        result = {
            "rival": name,
            "rate_per_second": round(rate, 3),
            "share_of_capacity": round(rate / capacities[name], 3),
            "share_of_smaller_capacity": round(rate / min(capacities.values()), 3),
        }
        results.append(result | summarise([run]))
        _say(f"{name}, {rate:.1f} texts/s", results[-1])
    return results


def _probes(servers: Sequence[Server], texts: Texts, plan: ServedPlan) -> list[Result]:
    results = []
    for server in servers:
        run = _watched(
            server,
            servers,
            probe(server.address, texts.long, texts.short, seconds=plan.probe_seconds, seed=SEED),
        )
        results.append({"rival": server.name} | summarise([run]))
        _say(f"{server.name}, short beside long", results[-1])
    return results


def summarise(runs: Sequence[tuple[Traffic, float]]) -> Result:
    """Median throughput of the rounds; percentiles of all their latencies together."""
    traffics = [traffic for traffic, _ in runs]
    latencies = [seconds for traffic in traffics for seconds in traffic.latencies_seconds]
    return {
        "sentences_per_second": round(median([found.per_second for found in traffics]), 3),
        "latency_seconds": summarise_latencies(latencies),
        "num_latencies": len(latencies),
        "num_errors": sum(found.num_errors for found in traffics),
        "rounds": [
            {
                "sentences_per_second": round(found.per_second, 3),
                "num_answered": round(found.num_answered, 2),
                "seconds": round(found.seconds, 3),
                "idle_cpu_seconds": idle,
            }
            for found, idle in runs
        ],
    }


def _say(what: str, found: Mapping[str, object]) -> None:
    print(
        f"{what}: {found['sentences_per_second']} sentences/s, {found['latency_seconds']},"
        f" {found['num_errors']} errors",
        flush=True,
    )
