"""Which DRAGOMAN_… variables stop a start."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from model.train.records.provenance import REVISION_VARIABLE
from service.cli.network.train import DATA_VARIABLE
from service.environment import OTHER_READERS, is_service_link, port_of, unknown_variables
from service.settings import Settings
from support.containers import IMAGE_VARIABLE
from support.custom_kinds import DEFINITIONS_VARIABLE as CRDS_VARIABLE
from support.manifests import RENDERED_VARIABLE
from support.running_server import ROOT

SERVICE_LINKS = {
    "DRAGOMAN_PORT": "tcp://10.0.0.1:8000",
    "DRAGOMAN_PORT_8000_TCP": "tcp://10.0.0.1:8000",
    "DRAGOMAN_PORT_8000_TCP_ADDR": "10.0.0.1",
    "DRAGOMAN_PORT_8000_TCP_PORT": "8000",
    "DRAGOMAN_PORT_8000_TCP_PROTO": "tcp",
    "DRAGOMAN_SERVICE_HOST": "10.0.0.1",
    "DRAGOMAN_SERVICE_PORT": "8000",
    "DRAGOMAN_SERVICE_PORT_HTTP": "8000",
    "DRAGOMAN_GPU_PORT": "tcp://10.0.0.2:8000",
    "DRAGOMAN_GPU_SERVICE_HOST": "10.0.0.2",
}


def _complaints(**environment: str) -> list[str]:
    return unknown_variables(environment, Settings.model_fields)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("DRAGOMAN_API_KEY_FILE", "DRAGOMAN_API_KEYS_FILE"),
        ("DRAGOMAN_MAX_ROW", "DRAGOMAN_MAX_ROWS"),
        ("DRAGOMAN_KEYS_REQUIRED", "DRAGOMAN_KEY_REQUIRED"),
        ("dragoman_beamsize", "DRAGOMAN_BEAM_SIZE"),
        ("DRAGOMAN_CHECKPOINTS", "DRAGOMAN_CHECKPOINT"),
        ("DRAGOMAN_HTTP_PORT", "DRAGOMAN_PORT"),
    ],
)
def test_a_misspelt_name_is_told_with_the_nearest_known_one(name: str, nearest: str) -> None:
    assert _complaints(**{name: ""}) == [f"{name} is no setting; the nearest name is {nearest}"]


def test_a_name_like_no_other_is_told_alone() -> None:
    assert _complaints(DRAGOMAN_QQQ="1") == ["DRAGOMAN_QQQ is no setting"]


def test_settings_in_any_case_and_the_projects_other_variables_are_known() -> None:
    known = {f"DRAGOMAN_{name.upper()}": "" for name in Settings.model_fields}
    assert _complaints(**known, **dict.fromkeys(OTHER_READERS, ""), dragoman_host="", PATH="") == []
    named = {DATA_VARIABLE, REVISION_VARIABLE, IMAGE_VARIABLE, RENDERED_VARIABLE}
    assert named <= OTHER_READERS


def test_every_variable_that_the_project_reads_is_known() -> None:
    """Who has set one for a test, and then starts a server, meant that test and no setting."""
    macros = {
        name
        for path in (ROOT / "model/native/src").rglob("*.*")
        for name in re.findall(r"\bDRAGOMAN_[A-Z0-9_]+", path.read_text(encoding="utf-8"))
    }
    found = set()
    for path in _sources():
        text = path.read_text(encoding="utf-8")
        found |= {*re.findall(r"""(?:["']|\$\{?)(DRAGOMAN_[A-Z0-9_]*[A-Z0-9])\b(?![*_])""", text)}
    known = {f"DRAGOMAN_{name.upper()}" for name in Settings.model_fields} | OTHER_READERS
    assert {CRDS_VARIABLE, IMAGE_VARIABLE} <= found
    assert found - macros - known == set()


def _sources() -> Iterator[Path]:
    """Programs of the project; tests name variables that nothing reads, so only what they share."""
    for folder in ("model", "service", "tools", "benchmarks", "experiments", "examples", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            if not path.name.startswith("test_"):
                yield path
    yield from (path for path in (ROOT / ".ci").iterdir() if path.is_file())
    yield from (ROOT / name for name in ("Makefile", "docker-compose.yml", "setup.py"))


def test_what_kubernetes_sets_for_a_service_of_that_name_is_known() -> None:
    assert unknown_variables(SERVICE_LINKS, Settings.model_fields) == []
    assert not is_service_link("DRAGOMAN_PORT", "8000")
    assert _complaints(DRAGOMAN_METRICS_PORT="9000")


def test_a_port_that_is_a_service_link_is_the_default_one() -> None:
    assert port_of("tcp://10.0.0.1:8000", default=8000) == 8000
    assert (port_of("", default=8000), port_of("81", default=8000)) == (8000, 81)
    with pytest.raises(ValueError, match="http"):
        port_of("http", default=8000)


def test_every_variable_that_the_project_names_is_one_that_it_knows() -> None:
    """Of the files that somebody copies from: pages, manifests, the image, the build."""
    copied = ("docs/*.md", "k8s/**/*", "README.md", "Makefile", "Dockerfile", "docker-compose.yml")
    names: set[str] = set()
    for path in [path for pattern in copied for path in ROOT.glob(pattern) if path.is_file()]:
        names |= set(re.findall(r"\bDRAGOMAN_[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8")))
    assert len(names) > 40
    misspelt = {"DRAGOMAN_NAME"}  # stands for any name
    assert _complaints(**dict.fromkeys(names - misspelt, "")) == []
