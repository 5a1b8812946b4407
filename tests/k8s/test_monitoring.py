"""The overlay for monitoring says what monitoring/ says."""

import json
import re

import pytest
import yaml

from support.manifests import K8S, load, of_kind, rendered, source
from support.running_server import ROOT

OVERLAY = source("overlays/monitoring")
RENDERED = dict(rendered())


def test_the_rule_holds_the_alerts_as_prometheus_reads_them() -> None:
    [rule] = of_kind(OVERLAY, "PrometheusRule")
    [alerts] = load(ROOT / "monitoring/alerts.yml")
    assert rule["spec"] == alerts, "run k8s/overlays/monitoring/generate"


def test_the_monitor_selects_the_service_under_the_job_that_alerts_select_by() -> None:
    [monitor] = of_kind(OVERLAY, "ServiceMonitor")
    [service] = of_kind(source("base"), "Service")
    labels = service["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    [prometheus] = load(ROOT / "monitoring/prometheus.yml")
    [job] = prometheus["scrape_configs"]
    assert labels[monitor["spec"]["jobLabel"]] == job["job_name"]
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {each["name"] for each in service["spec"]["ports"]}
    assert endpoint["path"] == job.get("metrics_path", "/metrics")
    assert endpoint["interval"] == prometheus["global"]["scrape_interval"]


def test_the_key_that_is_commented_out_is_one_secrets_and_of_that_endpoint() -> None:
    text = (K8S / "overlays/monitoring/servicemonitor.yaml").read_text(encoding="utf-8")
    with_key = re.sub("^( +)# (authorization:|  credentials:)", r"\1\2", text, flags=re.MULTILINE)
    [endpoint] = yaml.safe_load(with_key)["spec"]["endpoints"]
    authorization = endpoint.pop("authorization")
    [monitor] = of_kind(OVERLAY, "ServiceMonitor")
    assert [endpoint] == monitor["spec"]["endpoints"]
    # Without a type it is a bearer token.
    assert authorization.keys() == {"credentials"}
    selected = authorization["credentials"]
    assert selected.keys() == {"name", "key"}
    assert f"secret generic {selected['name']} --from-literal={selected['key']}=" in text


def test_prometheus_is_let_in_to_the_pods() -> None:
    [policy] = of_kind(OVERLAY, "NetworkPolicy")
    [base] = of_kind(source("base"), "NetworkPolicy")
    assert policy["spec"]["podSelector"] == base["spec"]["podSelector"]
    [monitor] = of_kind(OVERLAY, "ServiceMonitor")
    for selector in (policy["spec"]["podSelector"], monitor["spec"]["selector"]):
        assert "app.kubernetes.io/instance" in selector["matchLabels"]
    assert policy["spec"]["ingress"][0]["ports"] == base["spec"]["ingress"][0]["ports"]


def test_the_dashboard_is_made_from_a_file_that_is_there() -> None:
    [kustomization] = load(ROOT / "monitoring/kustomization.yaml")
    [generator] = kustomization["configMapGenerator"]
    for name in generator["files"]:
        assert json.loads((ROOT / "monitoring" / name).read_text(encoding="utf-8"))["title"]
    [overlay] = load(K8S / "overlays/monitoring/kustomization.yaml")
    assert "../../../monitoring" in overlay["resources"]


@pytest.mark.skipif("monitoring" not in RENDERED, reason="rendered by .ci/manifests only")
def test_the_rendered_config_map_is_the_dashboard_and_is_found() -> None:
    [dashboard] = of_kind(RENDERED["monitoring"], "ConfigMap")
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    [text] = dashboard["data"].values()
    path = ROOT / "monitoring/grafana/dashboards/dragoman.json"
    assert text == path.read_text(encoding="utf-8")
