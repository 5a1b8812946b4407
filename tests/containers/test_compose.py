"""`docker compose up`: the service, watched by Prometheus with our alerts; a training.

The files are docker-compose.yml and what `.ci/compose.yml` changes. Grafana is not started here.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import yaml

from support.containers import START_SECONDS, docker, wait_for
from support.running_server import ROOT, free_port
from support.tiny_checkpoint import EN_ZH, generated_pairs, write_tiny_checkpoint

ALERT = "DragomanDown"
EXPERIMENT = """
name: tiny
licence: CC0-1.0
data:
  folder: en-zh
  source_language: en
  target_language: zh
  train: [{name: talk, licence: CC0-1.0}]
  dev: [talk]
vocabulary: {size: 450}
network: {d_model: 16, num_heads: 2, d_ff: 16, num_encoder_layers: 1, num_decoder_layers: 1}
run:
  max_updates: 3
  batch_tokens: 200
  score_dev: false
  final_beam_size: 1
  log_every_updates: 1
  snapshot_every_updates: 100000
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The services of docker-compose.yml, under a project name of their own."""

    url: str
    prometheus: str
    environment: dict[str, str]

    def compose(self, *arguments: str) -> str:
        files = ["--file=docker-compose.yml", "--file=.ci/compose.yml"]
        done = subprocess.run(
            ["docker", "compose", "--project-name=dragoman-test", *files, *arguments],
            cwd=ROOT,
            env=os.environ | self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=150,
        )
        assert done.returncode == 0, f"docker compose {arguments}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def container(self, service: str) -> str:
        return self.compose("ps", "--all", "--quiet", service)

    def sample(self, query: str) -> float | None:
        """The value of the only series that `query` selects; None while there is none."""
        answer = self._ask("query", {"query": query})
        return float(answer["result"][0]["value"][1]) if answer and answer["result"] else None

    def alert(self) -> str | None:
        """The state of the alert; None when it has none."""
        answer = self._ask("alerts", {})
        for each in answer["alerts"] if answer else ():
            if each["labels"]["alertname"] == ALERT:
                return str(each["state"])
        return None

    def _ask(
        self, what: str, parameters: dict[str, str]
    ) -> dict[str, list[dict[str, dict[str, str]]]]:
        try:
            reply = httpx.get(
                f"{self.prometheus}/api/v1/{what}", params=parameters, timeout=10.0, trust_env=False
            )
        except httpx.TransportError:
            return {}
        return reply.json().get("data", {})


def _prometheus_configuration(target: str) -> str:
    """Ours, with another target and shorter intervals."""
    configuration = yaml.safe_load((ROOT / "monitoring/prometheus.yml").read_text("utf-8"))
    [job] = configuration["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["dragoman:8000"]}]
    job["static_configs"] = [{"targets": [target]}]
    intervals = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    assert configuration["global"].keys() >= intervals.keys()
    configuration["global"] |= intervals
    return yaml.safe_dump(configuration)


def _write_text(data: Path) -> None:
    for split in ("train", "dev"):
        folder = data / "en-zh" / split
        folder.mkdir(parents=True)
        for side, language in enumerate(("en", "zh")):
            lines = "".join(f"{pair[side]}\n" for pair in generated_pairs(60))
            (folder / f"talk.{language}").write_text(lines, encoding="utf-8")
    (data / "tiny.yaml").write_text(EXPERIMENT, encoding="utf-8")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("compose")
    folder.chmod(0o755)  # read by the containers' users
    port, prometheus_port = free_port(), free_port()
    configuration = folder / "prometheus.yml"
    configuration.write_text(_prometheus_configuration(f"127.0.0.1:{port}"), encoding="utf-8")
    shutil.copytree(ROOT / "checkpoints", folder / "checkpoints")
    (folder / "data").mkdir()
    _write_text(folder / "data")
    stack = Stack(
        url=f"http://127.0.0.1:{port}",
        prometheus=f"http://127.0.0.1:{prometheus_port}",
        environment={
            "DRAGOMAN_TEST_PORT": str(port),
            "PROMETHEUS_TEST_PORT": str(prometheus_port),
            "PROMETHEUS_TEST_CONFIG": str(configuration),
            "DRAGOMAN_CHECKPOINT_DIR": str(folder / "checkpoints"),
            "DRAGOMAN_DATA": str(folder / "data"),
        },
    )
    try:
        stack.compose("up", "--detach", "--no-build", "dragoman", "prometheus")
        yield stack
    finally:
        stack.compose("--profile=train", "down", "--volumes", "--timeout=5")


def test_the_service_becomes_healthy_and_translates_with_the_mounted_checkpoints(
    stack: Stack,
) -> None:
    name = stack.container("dragoman")

    def is_healthy() -> bool | None:
        return docker("inspect", "--format={{.State.Health.Status}}", name) == "healthy" or None

    wait_for(is_healthy, "healthy", seconds=START_SECONDS)
    assert "(/checkpoints)" in docker("logs", name)
    assert docker("exec", name, "id", "-u") != "0"
    assert docker("inspect", "--format={{.HostConfig.ReadonlyRootfs}}", name) == "true"
    body = {"q": "A man is riding a horse.", "source": "en", "target": "zh"}
    reply = httpx.post(f"{stack.url}/translate", json=body, timeout=60.0, trust_env=False)
    assert any("\u4e00" <= character <= "\u9fff" for character in reply.json()["translatedText"])
    body = {"q": "两只狗在草地上奔跑。", "source": "zh", "target": "en"}
    reply = httpx.post(f"{stack.url}/translate", json=body, timeout=60.0, trust_env=False)
    assert "dogs" in reply.json()["translatedText"]


def test_prometheus_scrapes_it_and_has_our_alerts(stack: Stack) -> None:
    wait_for(lambda: stack.sample('up{job="dragoman"}') == 1.0 or None, "up == 1")
    assert stack.sample("dragoman_engine_up") == 1.0
    # What was pending while the service started goes with the next evaluation.
    wait_for(lambda: stack.alert() is None or None, "no alert")


def test_a_mounted_checkpoint_is_replaced_by_renaming_and_reloaded(stack: Stack) -> None:
    folder = Path(stack.environment["DRAGOMAN_CHECKPOINT_DIR"])
    write_tiny_checkpoint(folder / ".new", name="newer", pairs=(EN_ZH,))
    (folder / "en-zh-small").rename(folder / ".old")
    (folder / ".new").rename(folder / "en-zh-small")
    stack.compose("kill", "--signal=HUP", "dragoman")

    def is_served() -> bool | None:
        metrics = httpx.get(f"{stack.url}/metrics", timeout=10.0, trust_env=False).text
        return 'checkpoint="newer"' in metrics or None

    wait_for(is_served, "the new checkpoint", seconds=START_SECONDS)
    body = {"q": "A man is riding a horse.", "source": "en", "target": "zh"}
    reply = httpx.post(f"{stack.url}/translate", json=body, timeout=60.0, trust_env=False)
    assert reply.status_code == 200


def test_a_training_runs_confined_and_its_checkpoint_is_evaluated(stack: Stack, image: str) -> None:
    said = stack.compose("run", "--rm", "--no-TTY", "train", "/data/tiny.yaml", "--threads", "1")
    assert said.splitlines()[-1] == "runs/tiny/checkpoint"
    scores = docker(
        "run", "--rm", "--network=host", "--read-only", "--tmpfs=/tmp",
        "--volume=dragoman-test_runs:/app/runs:ro",
        f"--volume={stack.environment['DRAGOMAN_DATA']}:/data:ro",
        image, "evaluate", "runs/tiny/checkpoint",
        "/data/en-zh/dev/talk.en", "/data/en-zh/dev/talk.zh", "--tokenize", "zh",
    )  # fmt: skip
    assert "BLEU" in scores


def test_a_stop_is_clean_and_turns_the_alert_pending(stack: Stack) -> None:
    name = stack.container("dragoman")
    stack.compose("stop", "dragoman")
    assert docker("inspect", "--format={{.State.ExitCode}}", name) == "0"
    wait_for(lambda: stack.sample('up{job="dragoman"}') == 0.0 or None, "up == 0")
    assert wait_for(stack.alert, ALERT) in ("pending", "firing")
