"""Clients: closed loops, Poisson arrivals, and short sentences sent beside long ones.

Owns when requests are sent and what is counted. An open-loop latency counts from the moment a
request was due, so a generator that falls behind cannot hide a slow server. Loopback only.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle

from benchmarks.load import REPLY_SECONDS, Client
from benchmarks.peers.results import Result
from benchmarks.peers.rounds import percentile

SETTLE_SHARE = 0.25
PERCENTILES = (50, 95, 99)
_PROBES_PER_SECOND = 4.0
_NUM_BACKGROUND = 8


@dataclass(slots=True, kw_only=True)
class Traffic:
    """What some requests saw.

    Attributes:
        latencies_seconds: Of every answered request that counts.
        num_errors: Requests with another answer than 200, or none.
        num_answered: Answers within the time that counts; one that is partly within counts partly.
        seconds: That time.
    """

    latencies_seconds: list[float] = field(default_factory=list)
    num_errors: int = 0
    num_answered: float = 0.0
    seconds: float = 0.0

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return self.num_answered / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server, and the language it translates English to."""

    url: str
    target: str

    def client(self) -> Client:
        """A connection of its own."""
        return Client(self.url, target=self.target)


def summarise_latencies(latencies: Sequence[float]) -> Result:
    """Percentiles in seconds."""
    values = {f"p{share}": percentile(latencies, share) for share in PERCENTILES}
    return {name: None if value is None else round(value, 4) for name, value in values.items()}


def poisson_arrivals(rate: float, seconds: float, *, seed: int) -> list[float]:
    """When requests of a Poisson process arrive within so many seconds."""
    rng = random.Random(seed)
    arrivals = []
    now = rng.expovariate(rate)
    while now < seconds:
        arrivals.append(now)
        now += rng.expovariate(rate)
    return arrivals


async def closed_loop(
    address: Address, texts: Sequence[str], *, num_clients: int, seconds: float
) -> Traffic:
    """Every client sends its next text when the last one is answered.

    The first quarter, and what comes after the time is over, when fewer requests are there, do not
    count. A server that answers in batches would have one more or one less of them in the time by
    chance, so a request counts by the share of its life that lies within.
    """
    supply = cycle(texts)
    begin = time.perf_counter() + seconds * SETTLE_SHARE
    traffic = Traffic(seconds=seconds * (1 - SETTLE_SHARE))
    end = begin + traffic.seconds

    async def work() -> None:
        client = address.client()
        while (sent := time.perf_counter()) < end:
            is_answered = await _is_answered(client, next(supply))
            now = time.perf_counter()
            if not is_answered:
                traffic.num_errors += 1
            elif now >= begin:
                traffic.latencies_seconds.append(now - sent)
                traffic.num_answered += share_within(sent, now, begin=begin, end=end)
        await client.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(num_clients):
            group.create_task(work())
    return traffic


def share_within(start: float, stop: float, *, begin: float, end: float) -> float:
    """The share of start to stop that lies between begin and end."""
    inside = max(min(stop, end) - max(start, begin), 0.0)
    return inside / (stop - start) if stop > start else float(begin <= start <= end)


async def open_loop(address: Address, texts: Sequence[str], arrivals: Sequence[float]) -> Traffic:
    """Send a text at every arrival, however many are unanswered."""
    traffic = Traffic()
    idle: list[Client] = []
    started = time.perf_counter()

    async def send(text: str, due: float) -> None:
        client = idle.pop() if idle else address.client()
        if await _is_answered(client, text):
            traffic.latencies_seconds.append(time.perf_counter() - due)
            traffic.num_answered += 1
        else:
            traffic.num_errors += 1
        idle.append(client)

    async with asyncio.TaskGroup() as group:
        for arrival, text in zip(arrivals, cycle(texts), strict=False):
            due = started + arrival
            await asyncio.sleep(max(due - time.perf_counter(), 0.0))
            group.create_task(send(text, due))
    traffic.seconds = time.perf_counter() - started
    for client in idle:
        await client.close()
    return traffic


async def probe(
    address: Address, long_texts: Sequence[str], short_text: str, *, seconds: float, seed: int
) -> Traffic:
    """Latency of short texts that arrive, Poisson, while 8 clients keep long ones running."""
    background = asyncio.create_task(
        closed_loop(address, long_texts, num_clients=_NUM_BACKGROUND, seconds=seconds)
    )
    await asyncio.sleep(seconds * SETTLE_SHARE)
    left = seconds * (1 - SETTLE_SHARE)
    arrivals = poisson_arrivals(_PROBES_PER_SECOND, left, seed=seed)
    traffic = await open_loop(address, [short_text], arrivals)
    behind = await background
    traffic.num_errors += behind.num_errors
    return traffic


async def _is_answered(client: Client, text: str) -> bool:
    try:
        async with asyncio.timeout(REPLY_SECONDS):
            status, _ = await client.translate(text)
    except (OSError, EOFError, TimeoutError):
        status = 0
    if status != 200:
        await client.close()
    return status == 200
