"""Volumes of the chart's pods: whatever a container writes has a place with room for it."""

import pytest

from support.charts import chart, needs_helm, refusal, server_deployments
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


def test_a_claim_is_writable_where_packages_are_to_be_converted_in_it() -> None:
    claim = ("models.source=pvc", "models.pvc.claimName=models")
    for is_read_only in (True, False):
        said = () if is_read_only else ("models.pvc.readOnly=false",)
        pod = _pod(*claim, *said)
        assert _volume(pod, "models")["persistentVolumeClaim"]["readOnly"] is is_read_only
        [server] = pod["containers"]
        [mount] = [each for each in server["volumeMounts"] if each["name"] == "models"]
        assert mount["readOnly"] is is_read_only


def _extra(volume: str, path: str = "/srv/kept") -> tuple[str, ...]:
    """Values with one more volume and its mount."""
    return (
        "extraVolumes[0].name=kept",
        f"extraVolumes[0].{volume}",
        "extraVolumeMounts[0].name=kept",
        f"extraVolumeMounts[0].mountPath={path}",
    )


CLAIM = "persistentVolumeClaim.claimName=kept"
SCRATCH = "emptyDir.sizeLimit=1Gi"
DOCUMENTS = "settings.DRAGOMAN_DOCUMENTS_FOLDER"
ONE_POD = ("autoscaling.kind=none", "replicas=1")


def test_a_groups_own_volumes_are_its_pods() -> None:
    documents = chart("groups.b.replicas=1", *(f"groups.a.{each}" for each in _extra(SCRATCH)))
    pods = {each["metadata"]["name"]: pod_of(each) for each in server_deployments(documents)}
    assert _volume(pods["one-dragoman-a"], "kept")["emptyDir"] == {"sizeLimit": "1Gi"}
    [server] = pods["one-dragoman-a"]["containers"]
    assert _places(server)["kept"] == "/srv/kept"
    assert "kept" not in {each["name"] for each in pods["one-dragoman-b"]["volumes"]}


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("DOCUMENTS_FOLDER", "/srv/documents"),
        ("DOCUMENTS_FOLDER", "/srv/kept/../documents"),
        ("DOCUMENTS_FOLDER", "/srv/keptaside"),
        ("GLOSSARIES", "/var/lib/glossaries.sqlite3"),
        ("SUGGESTIONS", "suggestions.jsonl"),
        ("SUGGESTIONS", "/var/cache/dragoman/suggestions.jsonl"),
    ],
)
def test_a_place_where_nothing_can_be_written_is_refused(name: str, path: str) -> None:
    setting = f"settings.DRAGOMAN_{name}"
    words = f"{setting} is {path}, where nothing can be written: mount a volume that holds it"
    assert f"- {words}" in refusal(f"{setting}={path}", *_extra(SCRATCH))
    read_only = "extraVolumeMounts[0].readOnly=true"
    words = "settings.DRAGOMAN_GLOSSARIES is /srv/kept/g, where nothing can be written"
    assert words in refusal("settings.DRAGOMAN_GLOSSARIES=/srv/kept/g", *_extra(SCRATCH), read_only)


@pytest.mark.parametrize(
    "settings",
    [
        ("settings.DRAGOMAN_GLOSSARIES=/srv/kept/glossaries.sqlite3", *_extra(SCRATCH)),
        ("settings.DRAGOMAN_SUGGESTIONS=/tmp/suggestions.jsonl",),
        ("settings.DRAGOMAN_SUGGESTIONS=/var/cache/dragoman/s.jsonl", "packed.size=1Gi"),
        (f"{DOCUMENTS}=/srv/kept", *_extra(SCRATCH, "/srv/kept/")),
        (f"{DOCUMENTS}=/srv/kept/documents", *_extra(SCRATCH, "/srv")),
        (f"{DOCUMENTS}=/srv/kept", "settings.DRAGOMAN_GLOSSARIES=", *_extra(SCRATCH)),
    ],
)
def test_a_place_on_a_volume_is_taken(settings: tuple[str, ...]) -> None:
    assert chart(*settings)


def test_a_folder_of_documents_that_outlives_a_pod_is_one_servers_at_a_time() -> None:
    kept = (f"{DOCUMENTS}=/srv/kept/documents", *_extra(CLAIM))
    told = refusal(*kept)
    assert f"- {DOCUMENTS} is on the volume kept, which pods share, and a folder is one" in told
    assert refusal(*kept, "autoscaling.kind=none", "replicas=2") == told
    [deployment] = server_deployments(chart(*kept, *ONE_POD))
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}, "the old one leaves first"
    [deployment] = server_deployments(chart(f"{DOCUMENTS}=/srv/kept", *_extra(SCRATCH)))
    assert deployment["spec"]["strategy"]["type"] == "RollingUpdate"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("extraVolumes[0].name=tmp",), "at '/extraVolumes/0/name'"),
        (_extra(SCRATCH, "/tmp"), "at '/extraVolumeMounts/0/mountPath'"),
        (_extra(SCRATCH, "srv"), "at '/extraVolumeMounts/0/mountPath'"),
        (_extra(SCRATCH)[2:], "extraVolumeMounts has kept, which is none of extraVolumes"),
    ],
)
def test_a_volume_of_ones_own_has_a_name_and_a_place_of_its_own(
    settings: tuple[str, ...], words: str
) -> None:
    assert words in refusal(*settings)
