"""Load on a running server, and the processor time that each of its processes took for it.

Owns the two kinds of load that the simulation is compared with: clients that wait for their
answers, and requests that come at times that chance decides, whoever waits. Linux only.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, count, takewhile
from pathlib import Path
from random import Random

import psutil

from benchmarks.soak.outcome import quantile
from benchmarks.soak.traffic import Client, Traffic, closed_loop, for_seconds

_MIB = 2**20
_KINDS = ("engine", "front", "owner")


def arrival_times(rate: float, seconds: float, *, seed: int) -> list[float]:
    """When requests come that know nothing of each other (a Poisson process)."""
    random = Random(seed)
    times = accumulate(random.expovariate(rate) for _ in count())
    return list(takewhile(lambda one: one < seconds, times))


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One load and what came of it.

    Attributes:
        num_requests: Answered.
        num_errors: Requests that were not.
        requests_per_second: Answered while requests were sent.
        p50_ms: Of the latencies, from when a request was sent.
        p99_ms: Likewise.
        late_p50_ms: How late requests were sent that had a time: the load generator's own lag.
        late_p99_ms: Likewise.
        engine_ms: Processor time of all engines, a request.
        front_ms: Of all fronts.
        owner_ms: Of the process that owns several fronts; of one front nothing.
        client_ms: Of the load generator.
        waited_ms: Time in which main threads of all of these were ready and had no core, a request.
    """

    num_requests: int
    num_errors: int
    requests_per_second: float
    p50_ms: float
    p99_ms: float
    engine_ms: float
    front_ms: float
    owner_ms: float
    client_ms: float
    waited_ms: float = 0.0
    late_p50_ms: float = 0.0
    late_p99_ms: float = 0.0


class Processes:
    """Processes of a server by what they do.

    Args:
        server: The one that was started.
    """

    def __init__(self, server: int) -> None:
        self._server = psutil.Process(server)

    def of(self, kind: str) -> list[psutil.Process]:
        """Engines, fronts, or the owner of several; with one front that is the server itself."""
        children = self._server.children()
        fronts = [one for one in children if "service.fronts" in one.cmdline()]
        if kind == "engine":
            return [one for one in children if "service.engine.worker" in one.cmdline()]
        if kind == "front":
            return fronts or [self._server]
        return [self._server] if fronts else []

    def seconds(self) -> dict[str, float]:
        """Processor time until now, of each kind and of the load generator."""
        found = {"client": time.process_time()}
        for kind in _KINDS:
            times = [one.cpu_times() for one in self.of(kind)]
            found[kind] = sum(one.user + one.system for one in times)
        found["waited"] = self._waited_seconds()
        return found

    def _waited_seconds(self) -> float:
        """Time until now in which main threads could have run and others did; 0 if nobody knows."""
        numbers = [os.getpid(), *(one.pid for kind in _KINDS for one in self.of(kind))]
        paths = [Path(f"/proc/{number}/schedstat") for number in numbers]
        return sum(int(path.read_text().split()[1]) for path in paths if path.exists()) / 1e9

    def own_mib(self, kind: str) -> float:
        """Memory that a process of this kind shares with nobody, in the mean."""
        sizes = [one.memory_full_info().uss for one in self.of(kind)]
        return float(sum(sizes) / max(len(sizes), 1) / _MIB)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request at a time.

    Attributes:
        seconds: When it was sent, from the first one's time.
        text: Its place among the texts.
        latency_seconds: Until its answer, well or not.
    """

    seconds: float
    text: int
    latency_seconds: float


async def waiting_clients(
    port: int, processes: Processes, texts: Sequence[str], *, number: int, seconds: float
) -> Level:
    """Clients that each ask again when they have their answer."""
    before = processes.seconds()
    traffic = await closed_loop(
        port, texts, num_clients=number, is_over=for_seconds(seconds), pause_seconds=0.0
    )
    return _level(traffic, before, processes.seconds())


async def arriving_requests(
    port: int, processes: Processes, asked: Sequence[tuple[float, int]], texts: Sequence[str]
) -> tuple[Level, list[Sent]]:
    """Requests at given times, on as many connections as that takes; and when each was sent.

    A generator in Python sends late: its timers are a millisecond coarse, and it shares cores with
    what it measures. Latency counts from when a request was sent; how late that was is told beside
    it, and what is simulated has the requests come when they were sent.

    Args:
        port: Of the server.
        processes: Its processes.
        asked: When, ascending, and which text.
        texts: Of these.
    """
    traffic, idle = Traffic(), list[Client]()
    done: list[Sent | None] = [None] * len(asked)
    before = processes.seconds()
    started = time.perf_counter()

    async def send(place: int, text: int) -> None:
        seconds = time.perf_counter() - started
        client = idle.pop() if idle else Client(port)
        reply = await client.translate(texts[text])
        traffic.replies.append(reply)
        done[place] = Sent(seconds=seconds, text=text, latency_seconds=reply.seconds)
        idle.append(client)

    async with asyncio.TaskGroup() as group:
        for place, (due, text) in enumerate(asked):
            await asyncio.sleep(max(0.0, started + due - time.perf_counter()))
            group.create_task(send(place, text))
        traffic.ended = time.perf_counter()
        traffic.wall_seconds = traffic.ended - started
    sent = sorted((one for one in done if one is not None), key=lambda one: one.seconds)
    late = [one.seconds - due for one, (due, _) in zip(sent, asked, strict=True)]
    level = _level(traffic, before, processes.seconds(), late)
    for client in idle:
        client.close()
    return level, sent


def _level(
    traffic: Traffic,
    before: dict[str, float],
    after: dict[str, float],
    late: Sequence[float] = (0.0,),
) -> Level:
    seconds = traffic.seconds_of(200)
    number = len(seconds)
    spent = {name: 1000 * (after[name] - before[name]) / max(number, 1) for name in after}
    return Level(
        num_requests=number,
        num_errors=traffic.statuses.total() - number,
        requests_per_second=round(traffic.answered_per_second, 1),
        p50_ms=round(1000 * quantile(seconds, 0.5), 2),
        p99_ms=round(1000 * quantile(seconds, 0.99), 2),
        engine_ms=round(spent["engine"], 3),
        front_ms=round(spent["front"], 3),
        owner_ms=round(spent["owner"], 3),
        client_ms=round(spent["client"], 3),
        waited_ms=round(spent["waited"], 3),
        late_p50_ms=round(1000 * quantile(late, 0.5), 2),
        late_p99_ms=round(1000 * quantile(late, 0.99), 2),
    )


def folder_mib(path: Path) -> float:
    """Size of all files of a folder."""
    files = [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
    return sum(one.stat().st_size for one in files) / _MIB
