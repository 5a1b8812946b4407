"""Reports of what is served after a load: events of the log, and labels of the metrics.

Owns which checkpoints, faults and settings are told, and as what. When that is so is
`service.models.deployments.rollout`; figures that a scrape reads are
`service.models.deployments.figures`.
"""

import logging
from collections.abc import Sequence
from dataclasses import asdict

from model.checkpoint.manifest import Manifest
from service.labels import PIVOT, first_served
from service.models.checkpoints.residency import counted_bytes, unknown_names
from service.models.deployments.registry import Routes
from service.settings import Settings
from service.telemetry.metrics import Metrics

_LOGGER = logging.getLogger("dragoman")


def report_checkpoints(
    routes: Routes, settings: Settings, metrics: Metrics, *, num_replicas: int
) -> None:
    """Log and count what is served, in which arithmetic and why, and what is not.

    Names in the settings that no checkpoint has are an event too, and so is a pivot: they may be
    misspelt.

    Args:
        routes: What is served.
        settings: Of the server.
        metrics: Where the present labels are registered.
        num_replicas: Engines that have the checkpoints of the start, each all of them.
    """
    _report_present(routes, metrics)
    _report_loaded(routes)
    for fault in routes.faults:
        _LOGGER.error("checkpoint_refused", extra={"fields": asdict(fault)})
    named = {"pinned": settings.pinned, "preferred": settings.preferred}
    unknown = unknown_names(named, {entry.name for entry in routes.entries})
    if unknown:
        _LOGGER.warning("checkpoint_names_unknown", extra={"fields": unknown})
    _report_pivot(routes, is_set="pivot" in settings.model_fields_set)
    _report_budget(routes, settings.memory_budget, num_replicas=num_replicas)


def report_pairs(metrics: Metrics, manifests: Sequence[Manifest]) -> None:
    """Register the labels of these checkpoints with the metrics."""
    first = first_served({one.name: one.pairs for one in manifests})
    names = [] if first else [one.name for one in manifests]
    metrics.pairs_loaded(first, on_demand=[*names, PIVOT])


def _report_present(routes: Routes, metrics: Metrics) -> None:
    """Register the labels of all checkpoints that may translate."""
    on_demand = () if routes.latest is None else routes.latest.on_demand
    manifests = [one.manifest for one in (*routes.checkpoints, *on_demand)]
    report_pairs(metrics, manifests)
    metrics.residency.expect(one.name for one in manifests)


def _report_loaded(routes: Routes) -> None:
    """Log each checkpoint that is loaded; one in a slow arithmetic as a warning."""
    latest = routes.latest
    for one in routes.loaded:
        fields = {
            "checkpoint": one.name,
            "device": latest.pool.ready.device if latest else None,
            "compute_type": one.compute_type,
            "compute_reason": one.compute_reason,
            "compute_problem": one.compute_problem,
            "instruction_set": one.instruction_set,
        }
        if one.is_slow:
            _LOGGER.warning("slow_compute_type", extra={"fields": fields})
        else:
            _LOGGER.info("checkpoint_served", extra={"fields": fields})


def _report_pivot(routes: Routes, *, is_set: bool) -> None:
    """Log a pivot that somebody has set and no checkpoint has: nothing goes by way of it."""
    pivot, languages = routes.table.pivot, routes.table.all.languages
    if is_set and pivot is not None and pivot not in languages:
        fields = {"pivot": pivot, "languages": sorted(languages)}
        _LOGGER.warning("pivot_unknown", extra={"fields": fields})


def _report_budget(routes: Routes, budget: int | None, *, num_replicas: int) -> None:
    """Log a budget that is less than what is always in memory: its unit may be forgotten."""
    if budget is None or routes.latest is None:
        return
    sizes = [one.entry.num_weight_bytes for one in routes.latest.checkpoints]
    needed = counted_bytes([sizes] * num_replicas)
    if needed > budget:
        fields = {"budget_bytes": budget, "needed_bytes": needed}
        _LOGGER.warning("memory_budget_too_small", extra={"fields": fields})
