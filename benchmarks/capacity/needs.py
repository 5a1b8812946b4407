"""Cores, memory and money that so many requests a second need, and what is the first to be full.

Owns the arithmetic, over measured costs of one request. Pure.
"""

import math
from dataclasses import dataclass

BITS = 8
_MEGA = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What one request of one sentence takes.

    Attributes:
        engine_seconds: Of a core of an engine that is full.
        front_seconds: Of a front that is alone.
        shared_front_seconds: Of one of several.
        owner_seconds: Of the owner, where there are several fronts.
        num_bytes: On the wire, both ways.
        engine_mib: Of an engine's own memory.
        front_mib: Of a front's.
        shared_mib: Of weights that all engines of a machine share.
    """

    engine_seconds: float
    front_seconds: float
    shared_front_seconds: float
    owner_seconds: float
    num_bytes: float
    engine_mib: float
    front_mib: float
    shared_mib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a rate needs.

    Attributes:
        requests_per_second: The rate.
        num_servers: Servers side by side, as one owner carries so much.
        num_fronts: Of all of them.
        num_engine_cores: Likewise.
        num_cores: Of all processes.
        memory_gib: Likewise.
        network_mbit: Megabits a second.
        per_hour: Money, by the price of a core hour.
        limit: What would be full first if the rate grew on one server of this shape.
    """

    requests_per_second: float
    num_servers: int
    num_fronts: int
    num_engine_cores: int
    num_cores: int
    memory_gib: float
    network_mbit: float
    per_hour: float
    limit: str


def needs(costs: Costs, rate: float, *, share: float, price: float, network_mbit: float) -> Needs:
    """What a rate needs if no process is busy for more than a share of the time.

    Args:
        costs: Of a request.
        rate: Requests a second.
        share: Of a core's time, what may be used on the average.
        price: Of a core hour.
        network_mbit: What one server's network carries.
    """
    bits = costs.num_bytes * BITS / _MEGA
    has_one_front = rate * costs.front_seconds <= share
    owner_seconds = 0.0 if has_one_front else costs.owner_seconds
    front_seconds = costs.front_seconds if has_one_front else costs.shared_front_seconds
    num_servers = max(
        1,
        math.ceil(rate * owner_seconds / share),
        math.ceil(rate * bits / (share * network_mbit)),
    )
    num_fronts = 1 if has_one_front else math.ceil(rate * front_seconds / share)
    num_fronts = max(num_fronts, num_servers)
    num_engines = max(num_servers, math.ceil(rate * costs.engine_seconds / share))
    num_owners = 0 if has_one_front else num_servers
    memory = (
        num_engines * costs.engine_mib
        + (num_fronts + num_owners) * costs.front_mib
        + num_servers * costs.shared_mib
    )
    busy = {
        "front": rate * front_seconds / num_fronts,
        "owner": rate * owner_seconds / num_servers,
        "engine": rate * costs.engine_seconds / num_engines,
        "network": rate * bits / (num_servers * network_mbit),
    }
    num_cores = num_engines + num_fronts + num_owners
    return Needs(
        requests_per_second=rate,
        num_servers=num_servers,
        num_fronts=num_fronts,
        num_engine_cores=num_engines,
        num_cores=num_cores,
        memory_gib=round(memory / 1024, 2),
        network_mbit=round(rate * bits, 2),
        per_hour=round(num_cores * price, 3),
        limit=max(busy, key=lambda name: busy[name]),
    )
