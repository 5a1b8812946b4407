"""Volumes of the chart's pods: whatever a container writes has a place with room for it."""

import pytest

from support.charts import chart, needs_helm, server_deployments
from support.manifests import Manifest, pod_of

pytestmark = needs_helm

PULL = ("models.source=pull", "models.pull.names[0].name=opus:en-de/opus-2020-02-26.zip")


def _pod(*settings: str) -> Manifest:
    [deployment] = server_deployments(chart(*settings))
    return pod_of(deployment)


def _volume(pod: Manifest, name: str) -> Manifest:
    [volume] = [each for each in pod["volumes"] if each["name"] == name]
    return volume


def _places(container: Manifest) -> dict[str, str]:
    """Where each volume is."""
    return {each["name"]: each["mountPath"] for each in container["volumeMounts"]}


@pytest.mark.parametrize("persistent", ["true", "false"])
def test_an_archive_is_unpacked_where_there_is_as_much_room_as_for_what_is_kept(
    persistent: str,
) -> None:
    size = ("models.pull.cache.size=7Gi", f"models.pull.cache.persistent={persistent}")
    pod = _pod(*PULL, *size)
    [init] = pod["initContainers"]
    variables = {each["name"]: each.get("value") for each in init["env"]}
    assert variables["TMPDIR"] == _places(init)["unpacked"]
    assert _volume(pod, "unpacked")["emptyDir"] == {"sizeLimit": "7Gi"}
    [server] = pod["containers"]
    assert "unpacked" not in _places(server)
    assert "unpacked" not in {each["name"] for each in _pod()["volumes"]}
