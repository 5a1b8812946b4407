"""docker-compose.yml holds together; `tests/containers` runs it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.environment import ENVIRONMENT_PREFIX, OTHER_READERS
from service.listening import CLOSE_SECONDS
from service.settings import Settings
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
    assert environment.keys() - known == {"GRAFANA_PASSWORD"}
    needed = float(environment["DRAGOMAN_GRACE_SECONDS"]) + 2 * CLOSE_SECONDS
    assert float(SERVICES[name]["stop_grace_period"].removesuffix("s")) > needed
    assert environment["DRAGOMAN_CHECKPOINT"] in dict(map(reversed, _mounts(SERVICES[name])))


@pytest.mark.parametrize("name", SERVING)
def test_the_server_sees_what_is_written_for_it_in_either_file_and_no_password(name: str) -> None:
    """So that a setting in the wrong file, or misspelt in either, does not pass in silence."""
    service = SERVICES[name]
    assert [each["path"] for each in service["env_file"]] == [".env", "dragoman.env"]
    assert not any(each["required"] for each in service["env_file"])
    assert service["environment"]["GRAFANA_PASSWORD"] == ""
    # What compose itself reads from .env is known to the server.
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    own = set(re.findall(r"\$\{(DRAGOMAN_[A-Z_]+)", text))
    assert own
    assert own <= OTHER_READERS


def _commented_out() -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Settings, and mounts by their targets, of a server whose lines of these are no comments."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    line = r"^( +)# (DRAGOMAN_[A-Z_]+: |- type: bind|  (?:source|target|read_only|bind): )"
    all_in = yaml.safe_load(re.sub(line, r"\1\2", text, flags=re.MULTILINE))["services"]
    before, service = SERVICES["dragoman"], all_in["dragoman"]
    changed = {name for name in service if service[name] != before[name]}
    assert changed == {"environment", "volumes"}
    assert service.keys() == before.keys()
    settings = dict(service["environment"].items() - before["environment"].items())
    added = [each for each in service["volumes"] if each not in before["volumes"]]
    assert all(all_in["dragoman-gpu"]["environment"][name] == settings[name] for name in settings)
    return settings, {each["target"]: each for each in added}


def test_the_keys_that_are_commented_out_are_a_directory_that_the_server_reads() -> None:
    """Not a file: an editor puts another one in its place, and the mount keeps the old."""
    settings, mounts = _commented_out()
    added = mounts[settings["DRAGOMAN_API_KEYS_DIR"]]
    assert added["read_only"] is True
    assert "." not in Path(added["source"]).name, "a directory"
    assert added["bind"] == {"create_host_path": False}


def test_glossaries_that_are_to_stay_have_a_folder_that_the_server_writes() -> None:
    """Not a file: SQLite keeps others beside it."""
    settings, mounts = _commented_out()
    assert settings.keys() == {"DRAGOMAN_API_KEYS_DIR", "DRAGOMAN_GLOSSARIES"}
    assert len(mounts) == 2
    kept = Path(settings["DRAGOMAN_GLOSSARIES"])
    assert Settings(glossaries=kept).glossaries == kept
    added = mounts[str(kept.parent)]
    assert "read_only" not in added
    assert added["bind"] == {"create_host_path": False}
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    page = (ROOT / "docs/deployment.md").read_text(encoding="utf-8")
    folder = Path(added["source"]).name
    for said in (text, page.partition("\n## What callers keep\n")[2]):
        assert f"mkdir {folder} && chown 10001 {folder}" in said
        assert f"DRAGOMAN_GLOSSARIES{': ' if said is text else '='}{kept}" in said
    assert f"/{folder}/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", SERVING)
def test_checkpoints_are_read_only_and_both_file_and_page_say_what_packages_need(name: str) -> None:
    target = SERVICES[name]["environment"]["DRAGOMAN_CHECKPOINT"]
    [mount] = [each for each in SERVICES[name]["volumes"] if each["target"] == target]
    assert mount["read_only"] is True
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    page = (ROOT / "docs/deployment.md").read_text(encoding="utf-8")
    above = text[: text.index(f"source: {mount['source']}")].rpartition("- type: bind")[2]
    for said in (above, page.partition("\n## Packages of Argos Translate\n")[2]):
        assert "read_only: false" in said
        assert "chown 10001 FOLDER" in said


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
    assert SERVICES[host]["ports"] == ["${DRAGOMAN_PUBLISH:-127.0.0.1:" + port + "}:" + port]
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
    assert started == {"dragoman", "prometheus", "alertmanager", "grafana"}
    [device] = SERVICES["dragoman-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}


def test_nothing_is_published_beyond_this_machine_unless_it_is_asked_for() -> None:
    published = [port for each in SERVICES.values() for port in each.get("ports", ())]
    assert len(published) == 5
    for port in published:
        by_default = re.sub(r"\$\{\w+:-(.*?)\}", r"\1", port)
        assert by_default.startswith("127.0.0.1:"), port
    for name in SERVING:
        [port] = SERVICES[name]["ports"]
        assert port.startswith("${DRAGOMAN_PUBLISH:-")


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_has_a_limit_of_memory_and_of_its_log(name: str) -> None:
    service = SERVICES[name]
    limit = re.sub(r"\$\{\w+:-(.*?)\}", r"\1", service["mem_limit"])
    assert re.fullmatch("[1-9][0-9]*[mg]", limit)
    assert service["logging"]["driver"] == "json-file"
    options = service["logging"]["options"]
    assert re.fullmatch("[1-9][0-9]*m", options["max-size"])
    assert int(options["max-file"]) > 1


def test_a_gpu_accepts_what_fills_its_slots_twice() -> None:
    values = {
        name.removeprefix(ENVIRONMENT_PREFIX).lower(): value
        for name, value in SERVICES["dragoman-gpu"]["environment"].items()
        if name.startswith(ENVIRONMENT_PREFIX)
    }
    settings = Settings(**values)
    assert settings.max_requests >= 2 * settings.max_slots
    assert settings.max_pending_segments >= 2 * settings.max_slots
    assert settings.max_connections > settings.max_requests


def test_prometheus_tells_the_alertmanager_beside_it() -> None:
    [configuration] = load(ROOT / "monitoring/prometheus.yml")
    [alertmanager] = configuration["alerting"]["alertmanagers"]
    [[target]] = [each["targets"] for each in alertmanager["static_configs"]]
    host, port = target.split(":")
    assert SERVICES[host]["ports"] == [f"127.0.0.1:{port}:{port}"]
    targets = dict(map(reversed, _mounts(SERVICES[host])))
    flags = dict(each.split("=", 1) for each in SERVICES[host]["command"])
    assert flags["--config.file"] in targets
    assert flags["--storage.path"] in targets
