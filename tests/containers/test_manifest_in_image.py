"""The image run as the Deployment says: its user, its rights, its settings, its probes."""

from collections.abc import Iterator

import pytest

from support.containers import Container, docker, run_once, serving
from support.manifests import pod_of
from support.pods import DEPLOYMENT, SPEC, manifest_environment, manifest_flags

_METRICS = """
import sys, urllib.request
print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics").read().decode())
"""


@pytest.fixture(scope="module")
def pod(image: str) -> Iterator[Container]:
    """A container as the kubelet would run it."""
    with serving(image, *manifest_flags(), **manifest_environment()) as container:
        yield container


def test_every_probe_is_answered(pod: Container) -> None:
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        pod.wait_status(SPEC[probe]["httpGet"]["path"], 200)


def test_it_is_the_manifests_user_and_knows_the_command_before_the_stop(pod: Container) -> None:
    assert pod.execute("id", "-u") == str(pod_of(DEPLOYMENT)["securityContext"]["runAsUser"])
    command = SPEC["lifecycle"]["preStop"]["exec"]["command"]
    pod.execute(*command[:-1], "0")


def test_it_has_the_threads_the_configuration_gives(pod: Container) -> None:
    pod.wait_status("/readyz", 200)
    said = docker("exec", pod.name, "python", "-c", _METRICS, str(pod.port))
    assert (
        f"dragoman_engine_threads {float(manifest_environment()['DRAGOMAN_NUM_THREADS'])}" in said
    )


def test_the_image_has_what_a_training_on_several_nodes_calls(image: str) -> None:
    assert run_once(image, "sh", "-c", "command -v torchrun") == "/opt/dragoman/bin/torchrun"
