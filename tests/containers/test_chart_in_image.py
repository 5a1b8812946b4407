"""Releases of the chart, each container run as a kubelet would: arguments, user, rights, volumes.

The init container pulls a model of a mirror into the claim; two servers of that release serve it
beside one of another release; the job reloads both. In another release two engines of a pod map one
file of packed weights, in the volume that the values give them; in a third a router leads to the
servers of two groups. What a cluster does is played here: a folder is the claim, addresses of
loopback are the pods', and an entry of /etc/hosts for each of them is the headless Service.
"""

import base64
import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from service.access.keys import ApiKey, new_key
from support.charts import chart, named, needs_helm
from support.containers import Container, docker, serving, wait_for
from support.huggingface_folders import marian_folder
from support.manifests import Manifest, container_of, of_kind, pod_of
from support.pods import container_flags
from support.registry_mirror import Mirror, running_mirror
from support.running_server import free_port

pytestmark = needs_helm
PODS = ("127.0.0.2", "127.0.0.3")
OTHER = "127.0.0.4"
NAME = "owner/opus-mt-en-zh"


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    """A hub with one model, of random weights."""
    folder = marian_folder(tmp_path_factory.mktemp("hub") / "model")
    with running_mirror() as mirror:
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        mirror.put_hub_repository(NAME, files, card={"license": "apache-2.0"})
        yield mirror


@dataclass(slots=True, kw_only=True)
class Release:
    """A release of the chart, and folders that stand for its volumes."""

    documents: list[Manifest]
    folders: dict[str, Path] = field(default_factory=dict)

    @property
    def deployment(self) -> Manifest:
        [server] = of_kind(self.documents, "Deployment")
        return server

    @property
    def environment(self) -> dict[str, str]:
        [reference] = container_of(self.deployment)["envFrom"]
        settings = named(self.documents, "ConfigMap", reference["configMapRef"]["name"])
        return {name: settings["data"][name] for name in settings["data"].keys() - ADDRESS}

    def run_init(self, *more: str) -> str:
        """What the only init container printed, its arguments and perhaps others."""
        [container] = pod_of(self.deployment)["initContainers"]
        flags = container_flags(pod_of(self.deployment), container, self.folders)
        flags += [f"--env={each['name']}={each['value']}" for each in container["env"]]
        return docker("run", "--rm", *flags, container["image"], *container["args"], *more)

    def run_reload(self, port: int) -> str:
        """What the job printed; the Service has an address for each pod."""
        [job] = of_kind(self.documents, "CronJob")
        pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        [container] = pod["containers"]
        [name] = [each[10:] for each in container["args"] if each.startswith("--service=")]
        flags = container_flags(pod, container, self.folders)
        flags += [f"--add-host={name}:{address}" for address in PODS]
        arguments = [*container["args"], f"--port={port}"]
        return docker("run", "--rm", *flags, container["image"], *arguments)


ADDRESS = {"DRAGOMAN_HOST", "DRAGOMAN_PORT"}
"""Pods have an address each; here they share a machine's."""


@pytest.fixture(scope="module")
def release(image: str, mirror: Mirror, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """One that pulls, with an administrator's key, and a second pod whose pull finds it done."""
    folder = tmp_path_factory.mktemp("release")
    key, digest = new_key()
    toml = folder / "keys.toml"
    toml.write_text(ApiKey(name="boss", sha256=digest, is_admin=True).line())
    documents = chart(
        *_image(image),
        "models.source=pull",
        f"models.pull.names[0].name={NAME}",
        f"models.pull.env.DRAGOMAN_HUB_URL={mirror.url}",
        "settings.DRAGOMAN_KEY_REQUIRED=false",
        "reload.enabled=true",
        "reload.keySecret.name=admin",
        files=[f"apiKeys.toml={toml}"],
    )
    folders = {name: folder / name for name in ("models", "api-keys", "key")}
    for each in folders.values():
        each.mkdir()
        each.chmod(0o777)  # the claim is the group's; here the user is another one
    [secret] = of_kind(documents, "Secret")
    for name, content in secret["data"].items():
        (folders["api-keys"] / name).write_bytes(base64.b64decode(content))
    (folders["key"] / "key").write_text(key)
    for path in (folder, folder.parent):
        path.chmod(0o755)
    return Release(documents=documents, folders=folders)


def _image(image: str) -> tuple[str, str]:
    repository, _, tag = image.rpartition(":")
    return f"image.repository={repository}", f"image.tag={tag}"


def _models(pod: Container) -> list[str]:
    reply = httpx.get(f"{pod.url}/v1/health", timeout=10.0, trust_env=False)
    return sorted(each["name"] for each in json.loads(reply.text)["checkpoints"])


def _translate(pod: Container) -> int:
    body = {"q": "Two dogs run.", "source": "en", "target": "zh"}
    return httpx.post(f"{pod.url}/translate", json=body, timeout=60.0, trust_env=False).status_code


def test_two_releases_serve_what_each_has_and_a_reload_reaches_every_pod_of_one(
    image: str, release: Release
) -> None:
    first = release.run_init()
    assert Path(first).parent == Path(release.environment["DRAGOMAN_CHECKPOINT"])
    assert release.run_init() == first, "another pod's pull finds it done"
    port = free_port()
    other = Release(documents=chart(*_image(image), release="two"))
    with ExitStack() as running:
        servers = [
            running.enter_context(
                serving(
                    image,
                    *container_flags(
                        pod_of(each.deployment), container_of(each.deployment), each.folders
                    ),
                    host=host,
                    port=port,
                    **each.environment,
                )
            )
            for each, host in ((release, PODS[0]), (release, PODS[1]), (other, OTHER))
        ]
        for pod in servers:
            pod.wait_status(
                container_of(release.deployment)["startupProbe"]["httpGet"]["path"], 200
            )
            assert _translate(pod) == 200
        pulled = Path(first).name
        bundled = _models(servers[2])
        assert [_models(pod) for pod in servers[:2]] == [[pulled], [pulled]]
        assert pulled not in bundled
        release.run_init("--as=second")
        assert sorted(release.run_reload(port).splitlines()) == [
            f"{host}: reloaded: {pulled}, second" for host in PODS
        ]
        assert [_models(pod) for pod in servers[:2]] == [[pulled, "second"]] * 2
        assert _models(servers[2]) == bundled
        for pod in servers:
            pod.send_sigterm()
            assert pod.wait() == 0


GROUP_ID = 10001
"""The group that a kubelet gives volumes to."""


def _engines(pod: Container) -> list[int]:
    """Process ids of its engines, as the host has them."""
    listed = docker("top", pod.name, "-eo", "pid,args").splitlines()[1:]
    return [int(line.split()[0]) for line in listed if "service.engine.worker" in line]


def _mapped(number: int) -> dict[tuple[str, str], tuple[int, int]]:
    """Files of packed weights that a process has mapped: device and inode to RSS and PSS, in kB."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for part in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", _memory(number), flags=re.MULTILINE):
        head, *lines = part.splitlines() or [""]
        if not head.endswith(".packed"):
            continue
        fields = {name: line for name, _, line in (one.partition(":") for one in lines)}
        sizes = [int(fields[name].split()[0]) for name in ("Rss", "Pss")]
        file = (head.split()[3], head.split()[4])
        before = found.get(file, (0, 0))
        found[file] = (before[0] + sizes[0], before[1] + sizes[1])
    return found


def _memory(number: int) -> str:
    return Path(f"/proc/{number}/smaps").read_text()


def test_the_engines_of_a_pod_map_one_file_of_packed_weights_in_its_volume(
    image: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    documents = chart(
        *_image(image),
        "packed.size=1Gi",
        "settings.DRAGOMAN_REPLICAS=2",
        "resources.requests.cpu=3",
        release="packed",
    )
    folder = tmp_path_factory.mktemp("packed")
    for path in (folder, folder.parent):
        path.chmod(0o755)
    os.chown(folder, 0, GROUP_ID)
    folder.chmod(0o2777)  # as a kubelet makes an emptyDir of a pod with this fsGroup
    release = Release(documents=documents, folders={"packed": folder})
    pod_flags = container_flags(
        pod_of(release.deployment), container_of(release.deployment), release.folders
    )
    with serving(image, *pod_flags, port=free_port(), **release.environment) as pod:
        pod.wait_status("/readyz", 200)

        def both() -> bool | None:
            told = httpx.get(f"{pod.url}/v1/health", timeout=10.0, trust_env=False).json()
            return True if told["replicas"] == {"ready": 2, "of": 2} else None

        wait_for(both, "both engines are ready")
        assert _translate(pod) == 200
        files = sorted(folder.rglob("*.packed"))
        checkpoints = _models(pod)
        assert len(files) == len(checkpoints)
        assert {file.stat().st_uid for file in files} == {GROUP_ID}
        first, second = (_mapped(number) for number in _engines(pod))
        assert first.keys() == second.keys()
        assert len(first) == len(files), "each file once, whoever maps it"
        shared = sum(rss for rss, _ in first.values())
        assert shared > 1000
        both_together = sum(pss for each in (first, second) for _, pss in each.values())
        assert both_together < 1.3 * max(shared, sum(rss for rss, _ in second.values()))
        before = set(_engines(pod))
        docker("kill", "--signal=HUP", pod.name)

        def replaced() -> bool | None:
            now = set(_engines(pod))
            return True if len(now) == 2 and not now & before and both() else None

        wait_for(replaced, "both engines are new ones", seconds=120.0)
        assert {frozenset(_mapped(number)) for number in _engines(pod)} == {frozenset(first)}
        assert sorted(folder.rglob("*.packed")) == files, "nothing was packed again"
        pod.send_sigterm()
        assert pod.wait() == 0


def test_a_router_leads_to_the_servers_of_two_groups(image: str) -> None:
    """The router's container with the chart's own arguments; entries of its hosts are Services."""
    port = free_port()
    documents = chart(
        *_image(image),
        "router.enabled=true",
        f"service.port={port}",
        "groups.one.replicas=1",
        "groups.other.replicas=1",
        release="routed",
    )
    router = named(documents, "Deployment", "routed-dragoman-router")
    settings = named(documents, "ConfigMap", "routed-dragoman-router")["data"]
    environment = {name: settings[name] for name in settings.keys() - ADDRESS}
    hosts = dict(zip(("one", "other"), PODS, strict=True))
    flags = container_flags(pod_of(router), container_of(router))
    flags += [f"--add-host=routed-dragoman-{name}-ready:{host}" for name, host in hosts.items()]
    with ExitStack() as running:
        for name, host in hosts.items():
            server = named(documents, "Deployment", f"routed-dragoman-{name}")
            own = named(documents, "ConfigMap", f"routed-dragoman-{name}")["data"]
            pod = running.enter_context(
                serving(
                    image,
                    *container_flags(pod_of(server), container_of(server)),
                    host=host,
                    port=port,
                    **{key: own[key] for key in own.keys() - ADDRESS},
                )
            )
            pod.wait_status("/readyz", 200)
        # Pods have 8000 each; here they share their network with whatever else has that port.
        arguments = [one.replace(":8000", f":{port}") for one in container_of(router)["args"]]
        front = running.enter_context(
            serving(image, *flags, command=arguments, port=free_port(), **environment)
        )
        front.wait_status(container_of(router)["readinessProbe"]["httpGet"]["path"], 200)

        def both() -> bool | None:
            told = httpx.get(f"{front.url}/v1/health", timeout=10.0, trust_env=False).json()
            return True if told["status"] == "ok" else None

        wait_for(both, "both groups answer the router")
        assert _translate(front) == 200
        front.send_sigterm()
        assert front.wait() == 0
