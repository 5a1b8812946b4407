"""docker-compose.yml holds together; `tests/containers` runs it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from service.server import _CLOSE_SECONDS
from service.settings import ENVIRONMENT_PREFIX, Settings
from support.manifests import load
from support.running_server import ROOT

[COMPOSE] = load(ROOT / "docker-compose.yml")
SERVICES = COMPOSE["services"]
OURS = {name: each for name, each in SERVICES.items() if "build" in each}
SERVING = ("dragoman", "dragoman-gpu")


def _mounts(service: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Source and target of each volume, variables by their defaults."""
    for volume in service.get("volumes", ()):
        if isinstance(volume, str):
            source, target = volume.removesuffix(":ro").rsplit(":", 1)
        else:
            source, target = volume["source"], volume["target"]
        yield re.sub(r"\$\{\w+:-(.*?)\}", r"\1", source), target


@pytest.mark.parametrize("name", OURS)
def test_our_containers_run_confined(name: str) -> None:
    service = OURS[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["tmpfs"] == ["/tmp"]


@pytest.mark.parametrize("name", SERVING)
def test_the_settings_are_the_servers_and_a_stop_waits_for_the_drain(name: str) -> None:
    environment = SERVICES[name]["environment"]
    known = {f"{ENVIRONMENT_PREFIX}{field.upper()}" for field in Settings.model_fields}
    assert environment.keys() <= known
    needed = float(environment["DRAGOMAN_GRACE_SECONDS"]) + 2 * _CLOSE_SECONDS
    assert float(SERVICES[name]["stop_grace_period"].removesuffix("s")) > needed
    assert environment["DRAGOMAN_CHECKPOINT"] in dict(map(reversed, _mounts(SERVICES[name])))


def test_whatever_is_mounted_is_in_the_repository_or_a_volume() -> None:
    yours = "./data"
    for service in SERVICES.values():
        for source, _ in _mounts(service):
            is_there = source in COMPOSE["volumes"] or (ROOT / source).exists()
            assert is_there or source == yours, source


def test_prometheus_finds_its_files_and_its_target() -> None:
    targets = dict(map(reversed, _mounts(SERVICES["prometheus"])))
    [configuration] = load(ROOT / "monitoring/prometheus.yml")
    flags = dict(each.split("=") for each in SERVICES["prometheus"]["command"])
    assert flags["--config.file"] in targets
    assert flags["--storage.tsdb.path"] in targets
    for name in configuration["rule_files"]:
        assert f"/etc/prometheus/{name}" in targets
    [job] = configuration["scrape_configs"]
    [scraped] = job["static_configs"][0]["targets"]
    host, port = scraped.split(":")
    assert host in SERVICES
    assert SERVICES[host]["ports"] == ["${DRAGOMAN_PUBLISH:-" + port + "}:" + port]
    assert SERVICES["dragoman-gpu"]["networks"]["default"]["aliases"] == [host]


def test_grafana_finds_its_source_and_its_dashboards() -> None:
    targets = dict(map(reversed, _mounts(SERVICES["grafana"])))
    provisioning = ROOT / targets["/etc/grafana/provisioning"]
    [sources] = load(next((provisioning / "datasources").glob("*.yml")))
    [source] = sources["datasources"]
    assert source["url"].removeprefix("http://").partition(":")[0] in SERVICES
    [providers] = load(next((provisioning / "dashboards").glob("*.yml")))
    [provider] = providers["providers"]
    assert list((ROOT / targets[provider["options"]["path"]]).glob("*.json"))


def test_profiles_keep_the_gpu_and_trainings_out_of_a_plain_up() -> None:
    started = {name for name, each in SERVICES.items() if "profiles" not in each}
    assert started == {"dragoman", "prometheus", "grafana"}
    [device] = SERVICES["dragoman-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
