"""Figures of the deployments, as a scrape reads them: counts, engines, what is in memory.

Owns the sums over all engines that run and that are gone, so that no counter goes back when one
leaves. Names and labels are `service.telemetry`'s; which deployments there are is
`service.models.deployments.rollout`'s.
"""

from collections.abc import Collection, Iterable
from itertools import chain

from service.engine.client.pool.replica import Replica
from service.engine.counters import only_totals, summed
from service.engine.messages import EngineCounters
from service.models.checkpoints.residency import counted_bytes
from service.models.deployments.deployment import Deployment
from service.models.deployments.registry import Routes
from service.telemetry.engine_metrics import START, EngineCollector, EngineFacts
from service.telemetry.metrics import Metrics
from service.telemetry.replica_metrics import ReplicaFacts
from service.telemetry.residency_metrics import Residency


class Figures:
    """Figures of one server's deployments.

    Args:
        routes: Those that serve.
        retiring: Those that finish what began on them; looked at anew by every scrape.
        budget: Bytes that weights and engines may take; None without one.
    """

    def __init__(
        self, routes: Routes, retiring: Collection[Deployment], *, budget: int | None
    ) -> None:
        self._routes = routes
        self._retiring = retiring
        self._budget = budget
        self._past = EngineCounters()  # totals of deployments that are gone

    def show(self, metrics: Metrics, *, max_pending: int) -> None:
        """Have them exported; with zeros before the first engine is there."""
        metrics.residency.watch(self.residency)
        metrics.watch_engine(
            EngineCollector(
                counters=self.counters,
                num_pending=lambda: sum(one.pool.num_pending for one in self._deployments),
                max_pending=lambda: max_pending * max(len(self._deployments), 1),
                fullest_share=lambda: self._most_pending / max_pending,
                ready=lambda: self._routes.ready,
                engines=self.engines,
                is_loaded=lambda: self._routes.by_directory,
            )
        )

    def keep(self, deployment: Deployment) -> None:
        """Keep the totals of a deployment that is closed."""
        self._past = summed([self._past, only_totals(deployment.pool.counters)])

    def counters(self) -> EngineCounters:
        """The totals of all engines so far, and the gauges of those that are there."""
        return summed([self._past, *(one.pool.counters for one in self._deployments)])

    def engines(self) -> dict[str, EngineFacts]:
        """The engine of the start, and others by the first checkpoint that each serves."""
        latest = self._routes.latest
        found = {START: EngineFacts() if latest is None else _facts(latest)}
        for deployment in self._routes.deployments:
            if deployment is not latest:
                served = (one for one in deployment.names if self._routes.find(one) is deployment)
                found.setdefault(next(served), _facts(deployment))
        return found

    def residency(self) -> Residency:
        """What is in memory."""
        loaded = {one.name for one in self._routes.loaded}
        known = [entry.name for entry in self._routes.entries]
        on_demand = set(self._routes.table.names) - loaded
        by_state = {
            "loaded": len(loaded),
            "asleep": len(on_demand),
            "unloaded": len(set(known) - loaded - on_demand),
            "faulty": len(self._routes.faults),
        }
        serving = self._routes.deployments
        sizes = (
            [one.entry.num_weight_bytes for one in each.checkpoints]
            for each in serving
            for _ in each.pool.replicas
        )
        return Residency(
            is_loaded={name: name in loaded for name in known},
            by_state=by_state,
            num_engines={"serving": _num_engines(serving), "leaving": _num_engines(self._retiring)},
            counted_bytes=counted_bytes(sizes),
            budget_bytes=self._budget or 0,
        )

    @property
    def _most_pending(self) -> int:
        return max((one.pool.num_pending for one in self._deployments), default=0)

    @property
    def _deployments(self) -> list[Deployment]:
        return list(chain(self._retiring, self._routes.deployments))


def _num_engines(deployments: Iterable[Deployment]) -> int:
    return sum(len(one.pool.replicas) for one in deployments)


def _facts(deployment: Deployment) -> EngineFacts:
    replicas = deployment.pool.replicas
    return EngineFacts(
        is_up=deployment.pool.is_ready,
        start_seconds=replicas[0].start_seconds,
        num_threads=sum(replica.num_threads or 0 for replica in replicas),
        replicas=tuple(map(_replica_facts, replicas)),
    )


def _replica_facts(replica: Replica) -> ReplicaFacts:
    counters = replica.counters
    return ReplicaFacts(
        is_up=replica.is_ready,
        process_id=replica.process_id,
        num_pending=replica.num_pending,
        num_pending_row_steps=replica.num_row_steps,
        num_row_steps=counters.num_row_steps,
        step_seconds=counters.step_seconds,
    )
