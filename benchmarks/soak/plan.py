"""Plans of a soak: the full run and the quick one.

Owns every number that decides how long a run takes.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Of one run.

    Attributes:
        capacity_seconds: Closed loop, to find out what the server can do.
        capacity_clients: Of that loop.
        crowd_clients: More than the steady load ever has at once, if the machine stumbles.
        crowd_seconds: How long they keep the server busy before it.
        steady_seconds: At 80% of the capacity.
        window_seconds: Of the steady load, judged one by one.
        window_capacity_seconds: Closed loop before each, for a machine is not equally fast all day.
        step_seconds: Decoding steps of each number of sentences, to find out what they take.
        trace_seconds: An hour of people's traffic, which is simulated too.
        overload_seconds: At five times the capacity.
        num_losses: Engines killed, and as many stopped.
        num_reloads: Checkpoints replaced under load.
        num_shutdowns: Servers that get SIGTERM under load.
        num_leavers: Clients that disconnect before their answer.
        num_idlers: Connections that are held open and say little or nothing.
        idle_seconds: How long they are held.
        num_texts: Distinct texts whose concurrent results are compared with serial ones.
        num_text_clients: Clients that send them.
        num_sharing_sentences: Sentences of a client beside each of the greedy ones.
        log_seconds: Load while logs cannot be written.
    """

    capacity_seconds: float = 30.0
    capacity_clients: int = 64
    crowd_clients: int = 700
    crowd_seconds: float = 20.0
    steady_seconds: float = 900.0
    window_seconds: float = 30.0
    window_capacity_seconds: float = 5.0
    step_seconds: float = 1.0
    trace_seconds: float = 240.0
    overload_seconds: float = 120.0
    num_losses: int = 20
    num_reloads: int = 20
    num_shutdowns: int = 20
    num_leavers: int = 2_000
    num_idlers: int = 300
    idle_seconds: float = 20.0
    num_texts: int = 2_000
    num_text_clients: int = 64
    num_sharing_sentences: int = 300
    log_seconds: float = 15.0


QUICK = Plan(
    capacity_seconds=5.0,
    capacity_clients=32,
    crowd_clients=100,
    crowd_seconds=3.0,
    steady_seconds=30.0,
    window_seconds=3.0,
    window_capacity_seconds=1.0,
    step_seconds=0.05,
    trace_seconds=8.0,
    overload_seconds=10.0,
    num_losses=2,
    num_reloads=2,
    num_shutdowns=2,
    num_leavers=200,
    num_idlers=50,
    idle_seconds=5.0,
    num_texts=100,
    num_text_clients=16,
    num_sharing_sentences=30,
    log_seconds=3.0,
)
"""Shows that everything runs; its numbers mean nothing."""
