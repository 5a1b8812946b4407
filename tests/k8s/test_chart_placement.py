"""Where the chart's pods go: what a release says of nodes holds beside the servers too."""

from pathlib import Path

import pytest
import yaml

from support.charts import EVERYTHING, chart, named, needs_helm
from support.manifests import Manifest, container_of, of_kind, pod_of

pytestmark = needs_helm

TOLERATION = {"key": "team", "operator": "Equal", "value": "words", "effect": "NoSchedule"}
ON_NODES = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
    }
}
BESIDE = {"preferredDuringSchedulingIgnoredDuringExecution": []}
VALUES = {
    "nodeSelector": {"pool": "words"},
    "tolerations": [TOLERATION],
    "affinity": {"nodeAffinity": ON_NODES, "podAffinity": BESIDE},
    "podLabels": {"team": "words"},
    "podAnnotations": {"example.org/owner": "words"},
    "priorityClass": {"name": "important"},
}
GPU_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def _helpers(tmp_path: Path, more: dict[str, object]) -> dict[str, Manifest]:
    """The templates of all pods that are no servers, by component."""
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.yaml"  # what helm made of one is kept
    path.write_text(yaml.safe_dump(VALUES | more))
    documents = chart(values=[EVERYTHING, path])
    [job] = of_kind(documents, "CronJob")
    templates = [each["spec"]["template"] for each in of_kind(documents, "Deployment")]
    templates.append(job["spec"]["jobTemplate"]["spec"]["template"])
    component = "app.kubernetes.io/component"
    found = {each["metadata"]["labels"][component]: each for each in templates}
    found.pop("server")
    assert found.keys() == {"router", "redis", "reload"}
    return found


def test_what_the_release_says_of_nodes_holds_for_all_pods(tmp_path: Path) -> None:
    for template in _helpers(tmp_path, {}).values():
        pod = template["spec"]
        assert pod["nodeSelector"] == {"pool": "words"}
        assert pod["tolerations"] == [TOLERATION]
        assert pod["affinity"] == {"nodeAffinity": ON_NODES}, "not beside or away from servers"
        assert pod["priorityClassName"] == "important"
        assert template["metadata"]["labels"]["team"] == "words"
        assert template["metadata"]["annotations"]["example.org/owner"] == "words"


def test_pods_that_are_sent_to_the_nodes_with_gpus_may_run_there(tmp_path: Path) -> None:
    gpu: dict[str, object] = {"gpu": {"enabled": True}, "autoscaling": {"kind": "none"}}
    for template in _helpers(tmp_path, gpu).values():
        assert template["spec"]["tolerations"] == [GPU_TOLERATION, TOLERATION]
    anywhere = gpu | {"nodeSelector": {}}
    for template in _helpers(tmp_path, anywhere).values():
        assert template["spec"]["tolerations"] == [TOLERATION], "no node there is asked for"


@pytest.mark.parametrize("groups", [(), ("groups.a.replicas=1", "router.enabled=true")])
def test_a_priority_that_is_made_for_the_release_is_there_for_all(groups: tuple[str, ...]) -> None:
    documents = chart(*groups, "priorityClass.create=true", "redis.bundled.enabled=true")
    made = [each["metadata"]["name"] for each in of_kind(documents, "PriorityClass")]
    assert len(made) == len({*made}), "each once"
    used = {pod_of(each)["priorityClassName"] for each in of_kind(documents, "Deployment")}
    assert used == {*made}
    redis = named(documents, "Deployment", "one-dragoman-redis")
    assert pod_of(redis)["priorityClassName"] == "words-one-dragoman"


def test_nothing_is_said_of_nodes_where_the_release_says_nothing() -> None:
    documents = chart("redis.bundled.enabled=true")
    redis = named(documents, "Deployment", "one-dragoman-redis")
    said = {"nodeSelector", "tolerations", "affinity", "priorityClassName"}
    assert not said & pod_of(redis).keys()


def test_a_reload_needs_no_image_with_cuda(everything: list[Manifest]) -> None:
    [job] = of_kind(everything, "CronJob")
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    router = container_of(named(everything, "Deployment", "one-dragoman-router"))
    assert {each["image"] for each in pod["containers"]} == {router["image"]}
