"""What is written in `monitoring/` fits together, Grafana, Prometheus and `/metrics` too."""

import re
import subprocess
from collections import Counter
from itertools import combinations

import pytest
import yaml

from support.prometheus_files import (
    MONITORING,
    OPERATIONS,
    dashboard,
    dashboard_expressions,
    exposed_names,
    find_tool,
    metric_names,
    panels,
    rules,
)
from support.running_server import RunningServer

PROMTOOL = find_tool("promtool")
OF_PROMETHEUS = {"up"}


def _anchors() -> set[str]:
    """Where a link into the page can point, as GitHub makes anchors."""
    headings = re.findall("^#+ (.+)$", OPERATIONS.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool; .ci/prometheus puts one into build/")
@pytest.mark.parametrize(
    "check",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
    ids=" ".join,
)
def test_promtool_finds_no_fault(check: tuple[str, ...]) -> None:
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, *check], cwd=MONITORING, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_metric_names_are_found_wherever_an_expression_names_them() -> None:
    expression = """
        sum by (job, le) (rate(a_total{route!~"b|c", d="e"}[5m] offset 6h)) / on (f) g
          and time() - h > 8 * 1e3 or absent(i{j="k"}) unless histogram_quantile(0.99, l_bucket)
    """
    assert metric_names(expression) == {"a_total", "g", "h", "i", "l_bucket"}


def test_every_metric_of_dashboard_and_alerts_is_one_that_a_server_tells(
    server: RunningServer,
) -> None:
    with server.client() as client:
        exposed = set(exposed_names(client.get("/metrics").text)) | OF_PROMETHEUS
    expressions = dashboard_expressions() + [(rule["alert"], rule["expr"]) for rule in rules()]
    for title, expression in expressions:
        names = metric_names(expression)
        assert names, title
        assert names <= exposed, (title, names - exposed)


def test_every_metric_that_a_server_tells_is_described_and_no_other(server: RunningServer) -> None:
    with server.client() as client:
        exposed = exposed_names(client.get("/metrics").text)
    told = {name for name in exposed.values() if not name.endswith("_created")}
    rows = re.findall(r"^\| `([a-z_]+)` \|", OPERATIONS.read_text(encoding="utf-8"), re.MULTILINE)
    assert Counter(rows) == Counter(told)


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids) > 20
    for one, other in combinations([panel["gridPos"] for panel in panels()], 2):
        is_beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        is_below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert is_beside or is_below, (one, other)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels())


def test_every_panel_says_what_it_shows_in_which_unit() -> None:
    for panel in panels():
        if panel["type"] != "row":
            assert panel["title"]
            assert panel["description"].endswith(".")
            field = panel["options"].get("yAxis") or panel["fieldConfig"]["defaults"]
            assert field["unit"], panel["title"]


def test_every_target_asks_the_chosen_source_about_the_chosen_servers() -> None:
    variables = {variable["name"] for variable in dashboard()["templating"]["list"]}
    assert variables == {"datasource", "instance"}
    for panel in panels():
        for target in panel.get("targets", []):
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert 'instance=~"$instance"' in target["expr"]
            known = {"$instance", "$__rate_interval"}
            assert set(re.findall(r"\$\w+", target["expr"])) <= known
        letters = [target["refId"] for target in panel.get("targets", [])]
        assert len(set(letters)) == len(letters)


def test_the_dashboard_names_no_host_and_no_source() -> None:
    text = str(dashboard())
    assert not re.search(r"https?://|localhost|:\d{4}\b|127\.0\.0\.1", text)


def test_every_alert_says_how_bad_it_is_and_where_its_runbook_stands() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert set(rule["annotations"]) == {"summary", "description", "runbook"}
        page, anchor = rule["annotations"]["runbook"].split("#")
        assert page == "docs/operations.md"
        assert anchor == rule["alert"].lower()
        assert anchor in _anchors()


def test_the_panels_that_the_runbooks_name_are_there() -> None:
    runbooks = OPERATIONS.read_text(encoding="utf-8").split("## Alerts")[1].split("## Traces")[0]
    named = set(re.findall(r"(?<![*\w])\*([A-Z][^*.]+)\*", " ".join(runbooks.split())))
    assert len(named) > 5
    assert named <= {panel["title"] for panel in panels()}


def test_every_alert_is_shown_to_fire_and_not_to() -> None:
    tests = yaml.safe_load((MONITORING / "alerts_test.yml").read_text(encoding="utf-8"))["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    firing = {case["alertname"] for case in cases if case["exp_alerts"]}
    assert firing == {rule["alert"] for rule in rules()}
    for name in firing:
        of_rule = [case["exp_alerts"] for case in cases if case["alertname"] == name]
        num_series = max(
            len({series["series"].split('instance="')[1][0] for series in test["input_series"]})
            for test in tests
            if any(case["alertname"] == name for case in test["alert_rule_test"])
        )
        fired = {alert["exp_labels"].get("instance") for alerts in of_rule for alert in alerts}
        assert [] in of_rule or len(fired) < num_series, name
