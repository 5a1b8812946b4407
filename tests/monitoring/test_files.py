"""What is written in `monitoring/` fits together, Grafana, Prometheus and `/metrics` too."""

import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

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
from support.running_router import running_router
from support.running_server import RunningServer

PROMTOOL = find_tool("promtool")
AMTOOL = find_tool("amtool")
OF_PROMETHEUS = {"up"}

needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="no promtool; .ci/prometheus puts one into build/"
)


def _anchors() -> set[str]:
    """Where a link into the page can point, as GitHub makes anchors."""
    headings = re.findall("^#+ (.+)$", OPERATIONS.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@needs_promtool
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


@pytest.mark.skipif(AMTOOL is None, reason="no amtool; .ci/prometheus puts one into build/")
def test_amtool_finds_no_fault(tmp_path: Path) -> None:
    assert AMTOOL is not None
    command = [AMTOOL, "check-config", MONITORING / "alertmanager.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (MONITORING / "alertmanager.yml").read_text(encoding="utf-8")
    damaged = tmp_path / "alertmanager.yml"
    damaged.write_text(text.replace("- name: nobody", "- name: somebody"), encoding="utf-8")
    done = subprocess.run([*command[:2], damaged], capture_output=True, text=True, check=False)
    assert done.returncode != 0, "a route leads to a receiver that is not there"


@pytest.mark.skipif(AMTOOL is None, reason="no amtool; .ci/prometheus puts one into build/")
@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_every_alert_has_a_route(rule: Mapping[str, Any]) -> None:
    assert AMTOOL is not None
    labels = [f"{name}={value}" for name, value in rule["labels"].items()]
    config = f"--config.file={MONITORING / 'alertmanager.yml'}"
    command = [AMTOOL, "config", "routes", "test", config, f"alertname={rule['alert']}", *labels]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["nobody"]


def test_what_silences_an_alert_is_an_alert_of_ours_on_the_same_server() -> None:
    configuration = yaml.safe_load((MONITORING / "alertmanager.yml").read_text(encoding="utf-8"))
    names = {rule["alert"] for rule in rules()}
    assert configuration["inhibit_rules"]
    for inhibition in configuration["inhibit_rules"]:
        assert inhibition["equal"] == ["job", "namespace", "pod", "instance"]
        matchers = " ".join(inhibition["source_matchers"] + inhibition["target_matchers"])
        assert set(re.findall(r"Dragoman\w+", matchers)) <= names


def test_the_key_that_is_commented_out_is_a_part_of_the_job(tmp_path: Path) -> None:
    text = (MONITORING / "prometheus.yml").read_text(encoding="utf-8")
    [job] = yaml.safe_load(text)["scrape_configs"]
    assert "authorization" not in job, "the file would have to be there"
    with_key = re.sub("^( +)# (authorization:|  credentials_file:)", r"\1\2", text, flags=re.M)
    [with_authorization] = yaml.safe_load(with_key)["scrape_configs"]
    authorization = with_authorization.pop("authorization")
    assert with_authorization == job
    # Without a type it is a bearer token.
    assert authorization == {"credentials_file": "/etc/prometheus/metrics-key"}
    if PROMTOOL is not None:
        config = tmp_path / "prometheus.yml"
        config.write_text(with_key, encoding="utf-8")
        subprocess.run([PROMTOOL, "check", "config", "--syntax-only", config], check=True)


@needs_promtool
@pytest.mark.parametrize(
    ("num_segments", "num_requests", "fullest"), [(90, 1, 0.9), (10, 6, 0.75), (0, 0, 0)]
)
def test_the_fullest_queue_is_the_segments_or_the_requests_of_any_server(
    tmp_path: Path, num_segments: int, num_requests: int, fullest: float
) -> None:
    [panel] = [panel for panel in panels() if panel["title"] == "Fullest queue"]
    [target] = panel["targets"]
    levels = {
        ("dragoman_fullest_queue_ratio", "a"): num_segments / 100,
        ("dragoman_requests_in_work", "a"): 0,
        ("dragoman_fullest_queue_ratio", "b"): 0,
        ("dragoman_requests_in_work", "b"): num_requests,
    }
    levels |= {("dragoman_max_requests", each): 8 for each in "ab"}
    series = [
        {"series": f'{name}{{job="dragoman", instance="{each}"}}', "values": f"{value}x2"}
        for (name, each), value in levels.items()
    ]
    asked = {
        "expr": target["expr"].replace("$instance", ".*"),
        "eval_time": "1m",
        "exp_samples": [{"labels": "{}", "value": fullest}],
    }
    rules_test = tmp_path / "panel.yml"
    tests = [{"interval": "1m", "input_series": series, "promql_expr_test": [asked]}]
    rules_test.write_text(yaml.safe_dump({"tests": tests}), encoding="utf-8")
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, "test", "rules", rules_test], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_to_watch_is_in_the_dashboards_first_row() -> None:
    section = (
        OPERATIONS.read_text(encoding="utf-8")
        .split("## What to watch")[1]
        .split("When it is slow")[0]
    )
    watched = set(re.findall(r"`(dragoman_[a-z_]+)`", section))
    assert len(watched) == 6
    rows = [panel["gridPos"]["y"] for panel in panels() if panel["type"] == "row"]
    shown = {
        name.removesuffix("_bucket")
        for panel in panels()
        if rows[0] < panel["gridPos"]["y"] < rows[1]
        for target in panel["targets"]
        for name in metric_names(target["expr"])
    }
    assert watched <= shown


def test_metric_names_are_found_wherever_an_expression_names_them() -> None:
    expression = """
        sum by (job, le) (rate(a_total{route!~"b|c", d="e"}[5m] offset 6h)) / on (f) g
          and time() - h > 8 * 1e3 or absent(i{j="k"}) unless histogram_quantile(0.99, l_bucket)
    """
    assert metric_names(expression) == {"a_total", "g", "h", "i", "l_bucket"}


def test_every_metric_of_dashboard_and_alerts_is_one_that_a_server_or_a_router_tells(
    server: RunningServer, tmp_path: Path
) -> None:
    exposed = set(OF_PROMETHEUS)
    groups = {"all": f"http://127.0.0.1:{server.port}"}
    with running_router(groups, tmp_path / "router.jsonl") as router:
        for each in (server, router):
            with each.client() as client:
                exposed |= exposed_names(client.get("/metrics").text).keys()
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
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
        page, anchor = rule["annotations"]["runbook_url"].split("#")
        assert page.endswith("docs/operations.md")  # on the web, where that is said
        assert anchor == rule["alert"].lower()
        assert anchor in _anchors()


def test_every_sum_of_an_alert_keeps_the_server_and_in_kubernetes_its_pod() -> None:
    sums = [
        {label.strip() for label in labels.split(",")}
        for rule in rules()
        for labels in re.findall(r"\bby \(([^)]*)\)", rule["expr"])
    ]
    assert len(sums) >= 5
    for labels in sums:
        assert labels >= {"job", "namespace", "pod", "instance"}
    for rule in rules():  # whatever else adds up series would lose these
        assert not re.search(r"\bwithout\b|\b(sum|max|min|avg|count)\s*\(", rule["expr"])


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
