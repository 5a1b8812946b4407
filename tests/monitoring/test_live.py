"""A real Prometheus scrapes a real server and a router; every expression of ours has an answer.

Run by `make test-monitoring`: it needs the program `prometheus`.
"""

import json
import math
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
import yaml

from model.native import kernels
from support.prometheus_files import (
    MONITORING,
    ROOT,
    dashboard,
    dashboard_expressions,
    find_tool,
    rules,
)
from support.running_router import running_router
from support.running_server import RunningServer, free_port, running_server

pytestmark = pytest.mark.monitoring

PROMETHEUS = find_tool("prometheus")
NUM_SCRAPES = 12
RATE_INTERVAL = "10s"
_THRESHOLD = re.compile(r"\s+(?:>|==)\s*[\d.]+(?: \* \d+)*")
SENTENCES = [f"Two children are playing on swing number {number}." for number in range(8)]


class LivePrometheus:
    """What a Prometheus answers over its HTTP API."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def is_ready(self) -> bool:
        with suppress(httpx.TransportError):
            return self._client.get("/-/ready").status_code == 200
        return False

    def get(self, path: str, **parameters: str) -> Any:
        reply = self._client.get(f"/api/v1/{path}", params=parameters).json()
        assert reply["status"] == "success", reply
        return reply["data"]

    def values(self, expression: str) -> list[float]:
        """What an expression has for values now; NaN among them."""
        return [
            float(sample["value"][1]) for sample in self.get("query", query=expression)["result"]
        ]


def _config(target: str, router: str) -> str:
    """Our configuration, asking `target` each second, with a router's job beside it."""
    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = dict.fromkeys(config["global"], "1s")
    config["rule_files"] = [str(MONITORING / name) for name in config["rule_files"]]
    [job] = config["scrape_configs"]
    job["static_configs"] = [{"targets": [target]}]
    of_router = {"job_name": "router", "static_configs": [{"targets": [router]}]}
    config["scrape_configs"].append(of_router)
    return yaml.safe_dump(config)


def _send_traffic(server: RunningServer) -> None:
    """A little of everything: two classes, both contracts, mistakes, and a client that leaves."""
    with server.client() as client:
        for text in (SENTENCES[0], " ".join(SENTENCES)):
            wish = {"q": text, "source": "en", "target": "zh"}
            assert client.post("/translate", json=wish).status_code == 200
        wish = {"texts": SENTENCES, "source": "en", "target": "zh-Hans", "priority": "bulk"}
        assert client.post("/v1/translate", json=wish).status_code == 200
        assert client.post("/translate", json={"q": "a", "target": "xx"}).status_code == 400
        assert client.get("/nowhere").status_code == 404
        wish = {"texts": SENTENCES, "source": "en", "target": "zh-Hans", "timeout_seconds": 0.001}
        assert client.post("/v1/translate", json=wish).status_code == 504
    # More than a fast machine does before the server has asked whether its client is there.
    wish = {"q": [" ".join(SENTENCES * 4)] * 16, "source": "en", "target": "zh"}
    body = json.dumps(wish).encode()
    head = "POST /translate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as leaving:
        leaving.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePrometheus]:
    """One that has seen a server in traffic for some seconds, and a router before it."""
    assert PROMETHEUS is not None, "there is no prometheus; .ci/prometheus puts one into build/"
    directory = tmp_path_factory.mktemp("prometheus")
    port = free_port()
    with (
        running_server(ROOT / "checkpoints/en-zh-small", directory / "server.jsonl") as server,
        running_router(
            {"all": f"http://127.0.0.1:{server.port}"}, directory / "router.jsonl"
        ) as router,
    ):
        config = directory / "prometheus.yml"
        targets = (f"127.0.0.1:{each.port}" for each in (server, router))
        config.write_text(_config(*targets), encoding="utf-8")
        command = [PROMETHEUS, f"--config.file={config}", f"--storage.tsdb.path={directory}/data"]
        command += [f"--web.listen-address=127.0.0.1:{port}"]
        log = directory / "prometheus.log"
        with (
            log.open("w") as lines,
            subprocess.Popen(command, stderr=lines) as process,
            httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
        ):
            live = LivePrometheus(client)
            try:
                while not live.is_ready():
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(0.1)
                        raise AssertionError(f"it has left: {log.read_text()}")
                seen = 'count_over_time(up{job="dragoman"}[1h])'
                while sum(live.values(seen)) < NUM_SCRAPES:
                    _send_traffic(server)
                yield live
            finally:
                process.terminate()


@pytest.mark.parametrize(("title", "expression"), dashboard_expressions())
def test_an_expression_of_the_dashboard_has_data(
    prometheus: LivePrometheus, title: str, expression: str
) -> None:
    asked = expression.replace("$instance", ".*").replace("$__rate_interval", RATE_INTERVAL)
    values = prometheus.values(asked)
    assert any(math.isfinite(value) for value in values), (title, asked, values)


def test_the_dashboards_list_of_servers_is_filled(prometheus: LivePrometheus) -> None:
    [variable] = [
        variable for variable in dashboard()["templating"]["list"] if variable["name"] == "instance"
    ]
    metric, label = variable["definition"].removeprefix("label_values(").rstrip(")").split(", ")
    assert prometheus.get(f"label/{label}/values", **{"match[]": metric})


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rules_expression_has_data_but_for_its_thresholds(
    prometheus: LivePrometheus, rule: dict[str, Any]
) -> None:
    prometheus.get("query", query=rule["expr"])
    asked = _THRESHOLD.sub("", rule["expr"]).replace("offset 6h", "offset 1s")
    assert asked != rule["expr"]
    for side in re.split(r"\s(?:or|and)\s(?:on \([^)]*\)\s)?", asked):
        values = prometheus.values(side.replace("absent(", "("))
        assert any(math.isfinite(value) for value in values), (side, values)


def test_what_is_a_threshold() -> None:
    assert _THRESHOLD.sub("", "a > 64 * 1024 * 1024 and b - c > 0.8") == "a and b - c"
    assert _THRESHOLD.sub("", 'up{job="d"} == 0 or absent(up)') == 'up{job="d"} or absent(up)'


def test_prometheus_evaluates_every_rule_and_none_fires_for_a_server_that_is_well(
    prometheus: LivePrometheus,
) -> None:
    loaded = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
    assert [rule["name"] for rule in loaded] == [rule["alert"] for rule in rules()]
    for rule in loaded:
        assert (rule["health"], rule.get("lastError")) == ("ok", None), rule
        # What was sent has errors of the server's in it, and it began before Prometheus did.
        may_wait = {"DragomanErrorRateHigh", "DragomanDown"}
        if kernels.find_problem() is not None:
            may_wait.add("DragomanSlowComputeType")
        is_waiting = rule["name"] in may_wait and rule["state"] == "pending"
        assert rule["state"] == "inactive" or is_waiting, rule


def test_what_was_sent_is_what_prometheus_has_seen(prometheus: LivePrometheus) -> None:
    """A little of everything has left its mark, the client that left included."""
    for selector in (
        'dragoman_requests_total{status="200", route="/translate"}',
        'dragoman_requests_total{status="400", route="/translate"}',
        'dragoman_requests_total{status="404", route="unmatched"}',
        'dragoman_requests_total{status="499", route="/translate"}',
        'dragoman_requests_total{status="504", route="/v1/translate"}',
        'dragoman_translation_seconds_count{priority="bulk"}',
        "dragoman_cancelled_segments_total",
        "dragoman_engine_process_resident_memory_bytes",
    ):
        assert sum(prometheus.values(selector)) > 0, selector
