"""What the monitors of chart and overlay make Prometheus scrape, and how often."""

import pytest

from support.charts import HELM, chart, needs_helm, refusal
from support.manifests import Manifest, of_kind, source

WITH_ROUTER = ("serviceMonitor.enabled=true", "router.enabled=true", "groups.a.replicas=1")


def _endpoints() -> list[Manifest]:
    documents = source("overlays/monitoring") + (chart(*WITH_ROUTER) if HELM else [])
    monitors = of_kind(documents, "ServiceMonitor")
    return [endpoint for each in monitors for endpoint in each["spec"]["endpoints"]]


def _is_kept(labels: dict[str, str], relabelings: list[Manifest]) -> bool:
    """Whether a target is one after these, all of which keep what is one of some values."""
    for each in relabelings:
        assert each.keys() == {"action", "sourceLabels", "regex"}
        assert each["action"] == "keep"
        [label] = each["sourceLabels"]
        if labels.get(label, "") not in each["regex"].split("|"):
            return False
    return True


def test_a_pod_that_still_pulls_is_not_scraped_and_does_not_count_as_down() -> None:
    endpoints = _endpoints()
    assert len(endpoints) == (3 if HELM else 1)
    for endpoint in endpoints:
        for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
            # Of every endpoint that a pod is behind, ready or not.
            labels = {"__meta_kubernetes_pod_phase": phase}
            assert _is_kept(labels, endpoint["relabelings"]) == (phase == "Running")


@needs_helm
@pytest.mark.parametrize(
    ("interval", "timeout"),
    [("1s", "1s"), ("5s", "5s"), ("10s", "10s"), ("15s", "10s"), ("1m", "10s")],
)
def test_a_scrape_may_take_no_longer_than_the_time_to_the_next_one(
    interval: str, timeout: str
) -> None:
    monitors = of_kind(chart(*WITH_ROUTER, f"serviceMonitor.interval={interval}"), "ServiceMonitor")
    told = [
        (endpoint["interval"], endpoint["scrapeTimeout"])
        for each in monitors
        for endpoint in each["spec"]["endpoints"]
    ]
    assert told == [(interval, timeout)] * 2


@needs_helm
def test_no_time_between_scrapes_is_refused() -> None:
    assert "at '/serviceMonitor/interval'" in refusal("serviceMonitor.interval=0s")
