"""Objects of kinds that others define: what they have is what their makers allow."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from support.charts import EVERYTHING, HELM, chart
from support.custom_kinds import closed, custom_kinds, definitions, looser, problems
from support.manifests import Manifest, of_kind, rendered, source

KINDS = custom_kinds()


def _objects() -> Iterator[Manifest]:
    """All that there are: the sources', those of what kustomize built, the chart's."""
    yield from source("overlays/monitoring")
    yield from source("training-nodes")
    for _, documents in rendered():
        yield from documents
    if HELM is not None:
        yield from chart(values=[EVERYTHING])


def _of(kind: str) -> list[Manifest]:
    return of_kind(list(_objects()), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_every_object_has_what_its_kind_allows(kind: str) -> None:
    found = _of(kind)
    assert found or HELM is None, "the schema is for nothing"
    assert [problems(KINDS[kind], each) for each in found] == [[]] * len(found)


WRONG: list[tuple[str, tuple[str | int, ...], Any, str]] = [
    ("ServiceMonitor", ("spec", "endpoints", 0, "scrapetimeout"), "9s", "'scrapetimeout'"),
    ("ServiceMonitor", ("spec", "endpoints", 0, "interval"), 15, '15 is not of type "string"'),
    ("ServiceMonitor", ("apiVersion",), "monitoring.coreos.com/v2", "monitoring.coreos.com/v1"),
    ("PrometheusRule", ("spec", "groups", 0, "rules", 0, "labels", "severity"), 1, "severity: "),
    ("PrometheusRule", ("spec", "groups", 0, "rules", 0, "for"), "soon", "for: "),
    ("PyTorchJob", ("spec", "nprocPerNode"), 1, 'nprocPerNode: 1 is not of type "string"'),
    ("PyTorchJob", ("spec", "pytorchReplicaSpecs", "Worker", "restartpolicy"), "x", "restartpol"),
    ("PyTorchJob", ("spec", "runPolicy", "cleanPodPolicy"), "Some", "cleanPodPolicy: "),
    ("HTTPRoute", ("spec", "rules", 0, "backendRefs", 0, "port"), "http", "port: "),
    ("HTTPRoute", ("spec", "rules", 0, "matches", 0, "path", "type"), "Prefix", "type: "),
    ("HTTPRoute", ("spec", "rules", 0, "timeouts", "request"), "5.5m", "request: "),
    ("ScaledObject", ("spec", "triggers", 0, "metadata", "threshold"), 128, "threshold: "),
    ("ScaledObject", ("spec", "maxReplicas"), 8, "'maxReplicas'"),
]


@pytest.mark.parametrize(("kind", "path", "value", "words"), WRONG)
def test_what_its_makers_would_refuse_is_refused(
    kind: str, path: tuple[str | int, ...], value: object, words: str
) -> None:
    found = _of(kind)
    if not found:
        pytest.skip("there is no helm; .ci/helm fetches it")
    wrong: Any = copy.deepcopy(found[0])
    inner = wrong
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    assert words in " ".join(problems(KINDS[kind], wrong))


@pytest.mark.parametrize("version", ["1.31", "1.35"])
def test_pods_of_the_training_job_fit_kubernetes_own_schema(version: str) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    for job in _of("PyTorchJob"):
        for replicas in job["spec"]["pytorchReplicaSpecs"].values():
            pods = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "pods"}}
            pods["template"] = replicas["template"]
            kubernetes_validate.validate(pods, version, strict=True)
            wrong: Any = copy.deepcopy(pods)
            wrong["template"]["spec"]["containers"][0]["imagePullPolice"] = "Always"
            with pytest.raises(kubernetes_validate.ValidationError):
                kubernetes_validate.validate(wrong, version, strict=True)


THEIRS: Any = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "maxLength": 63, "pattern": "^[a-z]+$"},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "ports": {"type": "array", "minItems": 1, "items": {"type": "integer", "maximum": 9}},
    },
}
NAME = {"type": "string", "maxLength": 63, "pattern": "^[a-z]$"}


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"name": NAME, "kind": {"type": "string", "enum": ["a"]}}, ""),
        ({"name": NAME, "ports": {"type": "array", "minItems": 2, "items": {"maximum": 9}}}, "[]"),
        ({"name": NAME | {"maxLength": 64}}, "maxLength is 64, and 63"),
        ({"name": {"type": "string", "maxLength": 9}}, "there is no pattern"),
        ({"name": NAME, "kind": {"type": "string"}}, "enum is None"),
        ({"name": NAME, "nam": NAME}, "do not know nam"),
    ],
)
def test_a_schema_that_allows_more_than_its_makers_is_found(
    properties: dict[str, Any], words: str
) -> None:
    ours = {"type": "object", "required": ["name"], "properties": properties}
    found = [*looser(ours, THEIRS, "spec")]
    assert len(found) == bool(words)
    assert words in " ".join(found)
    assert len([*looser(ours | {"required": []}, THEIRS, "spec")]) == len(found) + 1


@pytest.mark.skipif(not definitions(), reason="DRAGOMAN_CRDS names no definitions of the kinds")
def test_the_definitions_that_makers_install_agree() -> None:
    for kind, (api, theirs) in definitions().items():
        known = theirs["properties"]["spec"]
        assert [*looser(KINDS[kind]["properties"]["spec"], known, f"{kind} {api}")] == []
        for document in _of(kind):
            assert problems(closed(known), document["spec"]) == []
