"""The PyTorchJob: what Kubeflow's operator gives its pods is what torchrun and our command take."""

import os
import subprocess
from pathlib import Path

import pytest
from torch.distributed.run import get_args_parser

from model.train.config.experiment import read_placed_experiment
from service.cli.main import build_parser
from service.cli.network import train
from support.manifests import Manifest, load, of_kind, rendered, source
from support.running_server import ROOT

STACKS = {"source": source("training-nodes")} | {
    f"rendered-{name}": documents for name, documents in rendered() if name == "training-nodes"
}
SERVER = {
    "app.kubernetes.io/name": "dragoman",
    "app.kubernetes.io/instance": "dragoman",
    "app.kubernetes.io/component": "server",
}
stacks = pytest.mark.parametrize("documents", STACKS.values(), ids=STACKS.keys())


def _job(documents: list[Manifest]) -> Manifest:
    [job] = of_kind(documents, "PyTorchJob")
    assert job["apiVersion"] == "kubeflow.org/v1"
    spec: Manifest = job["spec"]
    return spec


def _template(documents: list[Manifest]) -> Manifest:
    """That of both kinds of pods."""
    replicas = _job(documents)["pytorchReplicaSpecs"]
    assert replicas.keys() == {"Master", "Worker"}
    assert replicas["Master"]["replicas"] == 1
    assert replicas["Master"]["template"] == replicas["Worker"]["template"]
    template: Manifest = replicas["Master"]["template"]
    return template


def _container(documents: list[Manifest]) -> Manifest:
    [container] = _template(documents)["spec"]["containers"]
    assert isinstance(container, dict)
    return container


def _num_pods(documents: list[Manifest]) -> int:
    return sum(each["replicas"] for each in _job(documents)["pytorchReplicaSpecs"].values())


def _environment(documents: list[Manifest]) -> dict[str, str]:
    [reference] = _container(documents)["envFrom"]
    [settings] = of_kind(documents, "ConfigMap")
    assert settings["metadata"]["name"] == reference["configMapRef"]["name"]
    data: dict[str, str] = settings["data"]
    return data


def _called(documents: list[Manifest], folder: Path, environment: dict[str, str]) -> list[str]:
    """Arguments of torchrun, as the pod's own script calls it."""
    recorder = folder / "torchrun"
    recorder.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    recorder.chmod(0o755)
    container = _container(documents)
    done = subprocess.run(
        [*container["command"], *container["args"]],
        env=environment | {"PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout.split()


@stacks
def test_the_operator_finds_its_container_and_starts_nothing_anew(
    documents: list[Manifest],
) -> None:
    assert _container(documents)["name"] == "pytorch"
    spec = _job(documents)
    assert (spec["runPolicy"]["backoffLimit"], spec["runPolicy"]["cleanPodPolicy"]) == (
        0,
        "Running",
    )
    # A worker of another rank ends with 0 when the first one has failed: it would not come again.
    policies = {each["restartPolicy"] for each in spec["pytorchReplicaSpecs"].values()}
    assert policies == {"Never"}


@stacks
def test_torchrun_knows_its_node_from_what_the_operator_sets(
    documents: list[Manifest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [port] = _container(documents)["ports"]
    told = {
        "PET_NNODES": str(_num_pods(documents)),
        "PET_NODE_RANK": "1",
        "PET_NPROC_PER_NODE": _job(documents)["nprocPerNode"],
        "PET_MASTER_ADDR": "dragoman-training-nodes-master-0",
        "PET_MASTER_PORT": str(port["containerPort"]),
    }
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    called = _called(documents, tmp_path, _environment(documents))
    node = get_args_parser().parse_args(called)
    assert (node.nnodes, str(node.node_rank), node.nproc_per_node) == ("2", "1", "1")
    assert (node.master_addr, str(node.master_port)) == tuple(told.values())[3:]
    assert node.rdzv_backend == "static"
    assert node.module
    assert node.training_script == "service.cli.main"


@stacks
def test_an_update_of_minutes_ends_and_is_saved_before_anything_is_killed(
    documents: list[Manifest], tmp_path: Path
) -> None:
    called = _called(documents, tmp_path, _environment(documents))
    seconds = get_args_parser().parse_args(called).shutdown_timeout
    assert seconds == 300
    assert _template(documents)["spec"]["terminationGracePeriodSeconds"] >= seconds + 30


@stacks
def test_it_resumes_what_has_a_state_and_calls_what_the_command_takes(
    documents: list[Manifest], tmp_path: Path
) -> None:
    environment = _environment(documents)
    output = tmp_path / "run"
    output.mkdir()
    first = _called(documents, tmp_path, environment | {"OUTPUT": str(output)})
    for name in ("state.pt", "state-previous.pt"):
        (output / name).touch()
        again = _called(documents, tmp_path, environment | {"OUTPUT": str(output)})
        assert again == [*first, "--resume"]
        (output / name).unlink()
    arguments = build_parser().parse_args(get_args_parser().parse_args(first).training_script_args)
    assert arguments.run is train.run
    mounts = {
        each["mountPath"]: each.get("readOnly", False)
        for each in _container(documents)["volumeMounts"]
    }
    assert mounts[str(arguments.data)] is True
    assert mounts[str(Path(environment["OUTPUT"]).parent)] is False
    assert arguments.threads == int(_container(documents)["resources"]["requests"]["cpu"])
    experiment, _ = read_placed_experiment(ROOT / environment["EXPERIMENT"])
    num_workers = _num_pods(documents) * int(_job(documents)["nprocPerNode"])
    assert experiment.run.update_freq >= num_workers


@stacks
def test_all_nodes_see_the_same_folders_and_reach_each_other_alone(
    documents: list[Manifest],
) -> None:
    pod, labels = (_template(documents)[key] for key in ("spec", "metadata"))
    claims = {
        each["metadata"]["name"]: each for each in of_kind(documents, "PersistentVolumeClaim")
    }
    named = {
        each["persistentVolumeClaim"]["claimName"]
        for each in pod["volumes"]
        if "persistentVolumeClaim" in each
    }
    assert named == claims.keys()
    assert all(each["spec"]["accessModes"] == ["ReadWriteMany"] for each in claims.values())
    [policy] = of_kind(documents, "NetworkPolicy")
    selector = policy["spec"]["podSelector"]
    assert selector["matchLabels"] == labels["labels"]
    assert not SERVER.items() <= labels["labels"].items(), "the Service would send requests there"
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": selector}]}]
    assert policy["spec"]["egress"][0] == {"to": [{"podSelector": selector}]}


@stacks
def test_its_pods_are_confined_as_those_of_the_job(documents: list[Manifest]) -> None:
    [job] = of_kind(source("training"), "Job")
    pod, of_job = _template(documents)["spec"], job["spec"]["template"]["spec"]
    for key in ("securityContext", "automountServiceAccountToken", "enableServiceLinks"):
        assert pod[key] == of_job[key]
    assert _container(documents)["securityContext"] == of_job["containers"][0]["securityContext"]
    [kustomization] = load(ROOT / "k8s/training-nodes/kustomization.yaml")
    assert kustomization["images"] == [
        {"name": _container(source("training-nodes"))["image"], "newTag": "cpu"}
    ]
