"""More replicas and fronts than a machine has: what they would do, simulated with measured times.

Owns which numbers of them are simulated. Clients wait for their answers, enough of them to keep all
engines full, and each process has a core of its own; the simulation knows neither memory bandwidth
nor processors that slow down when all are busy. So it says what fronts, owner and queues allow, not
what a processor does. Pure.
"""

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.capacity.shape import Kind, Shape
from benchmarks.replicas.simulation import simulate

REPLICAS = (1, 2, 4, 8, 16, 32, 64)
FRONTS = (1, 2, 4, 8)
CLIENTS_A_REPLICA = 32
_REQUESTS_A_CLIENT = 6
_FEWEST_REQUESTS = 2000
_DIGITS = 3


def scaling(
    kind: Kind, *, replicas: Sequence[int] = REPLICAS, fronts: Sequence[int] = FRONTS
) -> list[dict[str, float]]:
    """Requests a second, and who is busy, of every number of replicas with every number of fronts.

    Args:
        kind: What servers are made of.
        replicas: Numbers of engines.
        fronts: Numbers of fronts.
    """
    rows = []
    for number in replicas:
        for of_fronts in fronts:
            shape = Shape(num_servers=1, num_fronts=of_fronts, num_engines=number)
            clients = CLIENTS_A_REPLICA * number
            requests = max(_FEWEST_REQUESTS, _REQUESTS_A_CLIENT * clients)
            plan = replace(kind.plan(shape), num_clients=clients, num_requests=requests)
            outcome = simulate(plan, kind.times)
            engine_share = sum(outcome.replica_shares) / number
            rows.append(
                {
                    "replicas": number,
                    "fronts": of_fronts,
                    "requests_per_second": round(outcome.requests_per_second, 1),
                    "engine_share": round(engine_share, _DIGITS),
                    "front_share": round(outcome.front_share, _DIGITS),
                    "owner_share": round(outcome.owner_share, _DIGITS),
                }
            )
    return rows
