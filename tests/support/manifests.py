"""Kubernetes manifests as plain YAML: what the tests of `k8s/` and of the image read.

Owns finding and loading: the sources, where kustomize is not needed, and what kustomize made of
each overlay, in the folder that DRAGOMAN_MANIFESTS names (`.ci/manifests` fills it).
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from support.running_server import ROOT

K8S = ROOT / "k8s"
RENDERED_VARIABLE = "DRAGOMAN_MANIFESTS"

Manifest = dict[str, Any]


def load(path: Path) -> list[Manifest]:
    """The documents of one file."""
    return [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]


def source(folder: str) -> list[Manifest]:
    """What `folder` (under k8s/) lists as files, with its ConfigMaps as kustomize would make them.

    Names have no hash, images no tag, and bases are not followed.
    """
    directory = K8S / folder
    [kustomization] = load(directory / "kustomization.yaml")
    documents = []
    for name in kustomization["resources"]:
        if (directory / name).is_file():
            documents += load(directory / name)
    return documents + [_config_map(directory, each) for each in _generators(kustomization)]


def rendered() -> Iterator[tuple[str, list[Manifest]]]:
    """Each overlay's name and what kustomize made of it."""
    named = os.environ.get(RENDERED_VARIABLE)
    if named:
        paths = sorted(Path(named).glob("*.yaml"))
        assert paths, f"{RENDERED_VARIABLE} is {named!r}, which holds no .yaml file"
        for path in paths:
            yield path.stem, load(path)


def of_kind(documents: list[Manifest], kind: str) -> list[Manifest]:
    return [each for each in documents if each["kind"] == kind]


def pod_of(document: Manifest) -> Manifest:
    """The pod's specification in a Deployment or a Job."""
    pod: Manifest = document["spec"]["template"]["spec"]
    return pod


def container_of(document: Manifest) -> Manifest:
    [container] = pod_of(document)["containers"]
    assert isinstance(container, dict)
    return container


def environment_of(documents: list[Manifest], document: Manifest) -> dict[str, str]:
    """What the only container finds in its environment, from ConfigMaps and by itself."""
    maps = {each["metadata"]["name"]: each["data"] for each in of_kind(documents, "ConfigMap")}
    container = container_of(document)
    environment: dict[str, str] = {}
    for reference in container.get("envFrom", ()):
        environment |= maps[reference["configMapRef"]["name"]]
    return environment | {each["name"]: each["value"] for each in container.get("env", ())}


def _generators(kustomization: Manifest) -> list[Manifest]:
    generators: list[Manifest] = kustomization.get("configMapGenerator", [])
    return generators


def _config_map(directory: Path, generator: Manifest) -> Manifest:
    lines = list(generator.get("literals", ()))
    for name in generator.get("envs", ()):
        lines += (directory / name).read_text(encoding="utf-8").splitlines()
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": generator["name"]},
        "data": {key: value for key, _, value in pairs},
    }


def matches(selector: dict[str, str], labels: dict[str, str]) -> bool:
    """Whether a selector takes what has these labels."""
    return selector.items() <= labels.items()
