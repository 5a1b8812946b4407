"""The chart's objects hold together, and say what k8s/base and its overlays say."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from model.system.shares import Core
from service.cli.main import build_parser
from service.cli.models import pull
from service.cli.server import reload
from service.environment import ENVIRONMENT_PREFIX
from service.listening import CLOSE_SECONDS
from service.placement import Machine, place_replicas
from service.settings import Settings
from support.charts import EVERYTHING, chart, named, needs_helm, server_deployments
from support.manifests import (
    K8S,
    Manifest,
    container_of,
    environment_of,
    load,
    matches,
    of_kind,
    pod_of,
    source,
)
from support.running_server import ROOT

INSTANCE = "app.kubernetes.io/instance"
GROUPS = ("asia", "europe", "large")
pytestmark = needs_helm


def _templates(documents: list[Manifest]) -> list[Manifest]:
    """Every pod template."""
    jobs = [each["spec"]["jobTemplate"] for each in of_kind(documents, "CronJob")]
    owners = of_kind(documents, "Deployment") + jobs
    return [owner["spec"]["template"] for owner in owners]


def _selectors(value: Any) -> Iterator[dict[str, str]]:
    """Every selector of pods or Services, at any depth; namespaces are none of ours."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("selector", "labelSelector", "podSelector") and inner:
                yield inner.get("matchLabels", inner)
            elif key != "namespaceSelector":
                yield from _selectors(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _selectors(inner)


def test_every_selector_names_the_instance_and_selects_something(
    everything: list[Manifest],
) -> None:
    labels = [each["metadata"]["labels"] for each in _templates(everything)]
    labels += [each["metadata"]["labels"] for each in of_kind(everything, "Service")]
    selectors = list(_selectors(everything))
    assert len(selectors) > 20
    for selector in selectors:
        assert selector[INSTANCE] == "one"
        assert any(matches(selector, each) for each in labels)


def test_two_releases_live_in_one_namespace(everything: list[Manifest]) -> None:
    second = chart(release="two", values=[EVERYTHING])
    names = [
        {(each["kind"], each["metadata"]["name"]) for each in documents}
        for documents in (everything, second)
    ]
    assert not names[0] & names[1], "one would replace the other"
    for documents, others in ((everything, second), (second, everything)):
        for selector in _selectors(documents):
            for template in _templates(others):
                assert not matches(selector, template["metadata"]["labels"])


def test_groups_select_none_of_each_others_pods(everything: list[Manifest]) -> None:
    templates = {each["metadata"]["name"]: each for each in server_deployments(everything)}
    assert templates.keys() == {f"one-dragoman-{group}" for group in GROUPS}
    for group in GROUPS:
        for suffix in ("", "-pods"):
            service = named(everything, "Service", f"one-dragoman-{group}{suffix}")
            selected = [
                name
                for name, each in templates.items()
                if matches(
                    service["spec"]["selector"], each["spec"]["template"]["metadata"]["labels"]
                )
            ]
            assert selected == [f"one-dragoman-{group}"]


def test_a_pod_is_that_of_the_base(plain: list[Manifest]) -> None:
    """Probes, waits, limits and rights are the same numbers."""
    [ours], [base] = server_deployments(plain), of_kind(source("base"), "Deployment")
    for key in ("minReadySeconds", "progressDeadlineSeconds", "revisionHistoryLimit", "strategy"):
        assert ours["spec"][key] == base["spec"][key], key
    container, of_base = dict(container_of(ours)), dict(container_of(base))
    for key in ("image", "imagePullPolicy", "envFrom"):
        container.pop(key), of_base.pop(key, None)
    assert container == of_base
    pod, base_pod = dict(pod_of(ours)), dict(pod_of(base))
    assert pod["securityContext"].pop("fsGroupChangePolicy") == "OnRootMismatch"
    for key in ("containers", "serviceAccountName", "topologySpreadConstraints"):
        pod.pop(key), base_pod.pop(key)
    assert pod == base_pod
    own = environment_of(plain, ours)
    assert own.pop("DRAGOMAN_DEVICE") == "cpu"
    assert own == environment_of(source("base"), base)
    [scaler], [of_base] = (
        of_kind(documents, "HorizontalPodAutoscaler") for documents in (plain, source("base"))
    )
    for each in (scaler, of_base):
        each["spec"].pop("scaleTargetRef")
    assert scaler["spec"] == of_base["spec"]
    for kind in ("PodDisruptionBudget", "NetworkPolicy"):
        [first], [second] = of_kind(plain, kind), of_kind(source("base"), kind)
        for each in (first, second):
            each["spec"].pop("selector", None), each["spec"].pop("podSelector", None)
        assert first["spec"] == second["spec"]


def test_a_gpus_pod_is_that_of_the_overlay(everything: list[Manifest]) -> None:
    large = named(everything, "Deployment", "one-dragoman-large")
    [patch] = load(K8S / "overlays/gpu/deployment.yaml")
    [overlay] = load(K8S / "overlays/gpu/kustomization.yaml")
    [generator] = overlay["configMapGenerator"]
    environment = environment_of(everything, large)
    assert dict(line.split("=") for line in generator["literals"]).items() <= environment.items()
    assert large["spec"]["strategy"]["rollingUpdate"] == patch["spec"]["strategy"]["rollingUpdate"]
    assert pod_of(large)["tolerations"] == pod_of(patch)["tolerations"]
    assert pod_of(large)["runtimeClassName"] == "nvidia"
    limits = container_of(large)["resources"]["limits"]
    assert limits == {"memory": "8Gi", "nvidia.com/mig-1g.10gb": 1}
    assert container_of(large)["image"].endswith(":cuda")


def test_every_groups_settings_are_ones_the_server_accepts(everything: list[Manifest]) -> None:
    for deployment in server_deployments(everything):
        container = container_of(deployment)
        container["env"] = [each for each in container["env"] if "DRAGOMAN" in each["name"]]
        environment = environment_of(everything, deployment)
        values = {
            name.removeprefix(ENVIRONMENT_PREFIX).lower(): value
            for name, value in environment.items()
        }
        settings = Settings(**values)  # type: ignore[arg-type]  # pydantic reads the strings
        assert settings.num_threads == int(container["resources"]["requests"]["cpu"]) - 1
        grace = pod_of(deployment)["terminationGracePeriodSeconds"]
        assert grace > 8 + settings.grace_seconds + 2 * CLOSE_SECONDS
        probe = container["startupProbe"]
        startup = probe["periodSeconds"] * probe["failureThreshold"]
        deadline = deployment["spec"]["progressDeadlineSeconds"]
        assert settings.start_timeout_seconds < startup < deadline
    large = environment_of(everything, named(everything, "Deployment", "one-dragoman-large"))
    assert large["DRAGOMAN_MAX_BODY_BYTES"] == "67108864", "and not 6.7108864e+07"
    assert large["DRAGOMAN_REQUESTS_PER_MINUTE"] == "100", "what is of all is of each"


def _served(*settings: str) -> tuple[dict[str, str], Manifest]:
    """The settings and the pod of a release's one Deployment."""
    documents = chart(*settings)
    [deployment] = server_deployments(documents)
    return environment_of(documents, deployment), pod_of(deployment)


def test_fronts_and_their_owner_have_a_cpu_each_and_replicas_share_the_others() -> None:
    eight = "resources.requests.cpu=8"
    for replicas, fronts, expected in ((1, 1, 7), (3, 1, 2), (2, 2, 2), (5, 2, 1), (16, 1, 1)):
        chosen = (f"settings.DRAGOMAN_REPLICAS={replicas}", f"settings.DRAGOMAN_FRONTS={fronts}")
        environment, _ = _served(eight, *chosen)
        assert environment["DRAGOMAN_NUM_THREADS"] == str(expected)
    environment, _ = _served("settings.DRAGOMAN_REPLICAS=auto", "resources.limits.cpu=8")
    assert "DRAGOMAN_NUM_THREADS" not in environment, "the server reads the quota"


@pytest.mark.parametrize("cpus", [2, 8, 17])
@pytest.mark.parametrize("fronts", [1, 2, 4])
def test_a_replica_has_the_threads_that_the_server_would_give_it_with_such_a_quota(
    cpus: int, fronts: int
) -> None:
    cores = tuple(Core(node=0, processors=(number,)) for number in range(64))
    quota = Machine(cores=cores, num_usable=cpus, num_gpus=lambda: 0, environment={})
    for replicas in (1, 2, 3, 7):
        if replicas > cpus:
            continue
        chosen = (f"settings.DRAGOMAN_REPLICAS={replicas}", f"settings.DRAGOMAN_FRONTS={fronts}")
        environment, _ = _served(f"resources.requests.cpu={cpus}", *chosen)
        placed = place_replicas(
            replicas, device="cpu", num_threads=None, num_fronts=fronts, machine=quota
        )
        fewest = min(one.num_threads for one in placed)
        assert environment["DRAGOMAN_NUM_THREADS"] == str(fewest)


def test_packed_weights_have_a_volume_of_the_pod_twice_their_size() -> None:
    environment, pod = _served("packed.size=3Gi", "packed.medium=Memory")
    assert Settings.model_validate({"packed_bytes": environment["DRAGOMAN_PACKED_BYTES"]}) == (
        Settings(packed_bytes=3 * 2**30)
    )
    [volume] = [each for each in pod["volumes"] if each["name"] == "packed"]
    assert volume["emptyDir"] == {"sizeLimit": "6Gi", "medium": "Memory"}
    [container] = pod["containers"]
    places = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert places["packed"] == environment["DRAGOMAN_CACHE"]
    environment, pod = _served()
    assert "DRAGOMAN_CACHE" not in environment
    assert {each["name"] for each in pod["volumes"]} == {"tmp"}


def test_all_containers_run_confined_with_volumes_that_are_there(
    everything: list[Manifest],
) -> None:
    templates = _templates(everything)
    assert len(templates) == len(GROUPS) + 3, "a router, a small Redis, the reload"
    for template in templates:
        pod = template["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        volumes = {each["name"] for each in pod.get("volumes", ())}
        mounted = set()
        for container in pod["containers"] + pod.get("initContainers", []):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert "memory" in container["resources"]["limits"]
            mounted |= {each["name"] for each in container.get("volumeMounts", ())}
        assert mounted == volumes


@pytest.mark.parametrize(
    "setting",
    [
        "apiKeys.toml={}",
        "redis.url=redis://{}",
        "settings.DRAGOMAN_PIVOT={}",
    ],
)
def test_what_is_changed_rolls_the_pods(setting: str) -> None:
    first, same, other = (chart(setting.format(value)) for value in ("de", "de", "fr"))
    templates = [server_deployments(each)[0]["spec"]["template"] for each in (first, same, other)]
    assert templates[0] == templates[1]
    assert templates[0] != templates[2]


def test_keys_and_the_url_of_redis_are_secrets_that_the_pods_read(tmp_path: Path) -> None:
    toml = tmp_path / "keys.toml"
    toml.write_text('[keys.alice]\nsha256 = "x"\n')
    documents = chart("redis.url=redis://:word@redis:6380/1", files=[f"apiKeys.toml={toml}"])
    [server] = server_deployments(documents)
    secrets = {each["metadata"]["name"]: each["data"] for each in of_kind(documents, "Secret")}
    [variable] = container_of(server)["env"]
    reference = variable["valueFrom"]["secretKeyRef"]
    assert (variable["name"], reference["key"]) == ("DRAGOMAN_REDIS_URL", "url")
    assert "url" in secrets[reference["name"]]
    [volume] = [each for each in pod_of(server)["volumes"] if "secret" in each]
    assert [*secrets[volume["secret"]["secretName"]]] == ["keys.toml"]
    assert "word" not in str([each for each in documents if each["kind"] != "Secret"])
    [policy] = of_kind(documents, "NetworkPolicy")
    assert {"port": 6380, "protocol": "TCP"} in policy["spec"]["egress"][1]["ports"]


def _models_folder(deployment: Manifest) -> str:
    [mount] = [
        each for each in container_of(deployment)["volumeMounts"] if each["name"] == "models"
    ]
    assert mount["readOnly"] is True
    return str(mount["mountPath"])


def test_what_the_init_containers_pull_is_what_is_served(everything: list[Manifest]) -> None:
    asia = named(everything, "Deployment", "one-dragoman-asia")
    served = environment_of_group(everything, asia)["DRAGOMAN_CHECKPOINT"]
    assert served.startswith(f"{_models_folder(asia)}/")
    first, second = pod_of(asia)["initContainers"]
    parsed = [build_parser().parse_args(each["args"]) for each in (first, second)]
    for arguments in parsed:
        assert (arguments.run, arguments.to) == (pull.run, Path(served))
        assert (arguments.yes, arguments.replace) == (True, True)
    assert parsed[0].name == "firefox:de-en"
    assert parsed[0].accept_licence == "MPL-2.0"
    assert (parsed[1].checkpoint_name, parsed[1].pairs) == ("mine", ["de:en"])
    assert (parsed[1].compute, parsed[1].family) == ("float16", "nllb")
    claim = named(everything, "PersistentVolumeClaim", "one-dragoman-asia-models")
    [volume] = [each for each in pod_of(asia)["volumes"] if each["name"] == "models"]
    assert volume["persistentVolumeClaim"] == {"claimName": claim["metadata"]["name"]}
    variables = {each["name"]: each.get("value") for each in first["env"]}
    assert variables["DRAGOMAN_CACHE"].startswith("/models/")
    assert not served.startswith(variables["DRAGOMAN_CACHE"]), "the cache is not served"
    other = chart("groups.asia.models.pull.names[0].name=firefox:en-de", values=[EVERYTHING])
    asia = named(other, "Deployment", "one-dragoman-asia")
    assert environment_of_group(other, asia)["DRAGOMAN_CHECKPOINT"] != served


def environment_of_group(documents: list[Manifest], deployment: Manifest) -> dict[str, str]:
    [reference] = container_of(deployment)["envFrom"]
    data: dict[str, str] = named(documents, "ConfigMap", reference["configMapRef"]["name"])["data"]
    return data


def test_models_come_from_a_claim_or_an_image_too(everything: list[Manifest]) -> None:
    for group, source_key in (("europe", "persistentVolumeClaim"), ("large", "image")):
        deployment = named(everything, "Deployment", f"one-dragoman-{group}")
        [volume] = [each for each in pod_of(deployment)["volumes"] if each["name"] == "models"]
        assert source_key in volume
        folder = environment_of_group(everything, deployment)["DRAGOMAN_CHECKPOINT"]
        assert folder.startswith(f"{_models_folder(deployment)}/")


def test_the_queue_that_keda_asks_for_is_the_servers_and_of_this_group(
    everything: list[Manifest],
) -> None:
    instruments = (ROOT / "service/telemetry/engine_metrics.py").read_text(encoding="utf-8")
    for group in ("asia", "large"):
        name = f"one-dragoman-{group}"
        scaled = named(everything, "ScaledObject", name)
        queue, *others = scaled["spec"]["triggers"]
        metric, labels = re.findall(r"(dragoman_\w+)\{(.*?)\}", queue["metadata"]["query"])[0]
        assert f'"{metric.removeprefix("dragoman_")}"' in instruments
        assert labels == f'namespace="words",service="{name}"'
        assert named(everything, "Service", name)
        assert scaled["spec"]["scaleTargetRef"]["name"] == name
        assert "replicas" not in named(everything, "Deployment", name)["spec"]
        # The load of a CPU says nothing of a GPU's.
        assert [each["type"] for each in others] == ([] if group == "large" else ["cpu"])
    monitor = named(everything, "ServiceMonitor", "one-dragoman")
    assert monitor["spec"]["jobLabel"] == "app.kubernetes.io/name"
    scraped = [
        each["metadata"]["name"]
        for each in of_kind(everything, "Service")
        if matches(monitor["spec"]["selector"]["matchLabels"], each["metadata"]["labels"])
    ]
    assert sorted(scraped) == [f"one-dragoman-{group}" for group in GROUPS], "each pod once"


def test_the_reload_asks_every_pod_of_every_group(everything: list[Manifest]) -> None:
    [job] = of_kind(everything, "CronJob")
    assert (job["spec"]["suspend"], job["spec"]["schedule"]) == (False, "0 3 * * *")
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    [key] = [each["secret"] for each in pod["volumes"] if "secret" in each]
    assert key["secretName"] == "admin-key"
    asked = set()
    for container in pod["containers"]:
        arguments = build_parser().parse_args(container["args"])
        assert arguments.run is reload.run
        [name] = arguments.names
        service = named(everything, "Service", name)
        assert service["spec"]["clusterIP"] == "None"
        assert service["spec"]["publishNotReadyAddresses"] is True
        [port] = container_of(server_deployments(everything)[0])["ports"]
        assert arguments.port == port["containerPort"]
        folders = [each["mountPath"] for each in container["volumeMounts"]]
        assert str(Path(arguments.key_file).parent) in folders
        asked.add(name)
    assert asked == {f"one-dragoman-{group}-pods" for group in GROUPS}
    by_hand = chart("reload.enabled=true", "reload.keySecret.name=x", "apiKeys.existingSecret=y")
    [job] = of_kind(by_hand, "CronJob")
    assert job["spec"]["suspend"] is True


def test_what_pods_may_reach_is_what_they_need(everything: list[Manifest]) -> None:
    servers = named(everything, "NetworkPolicy", "one-dragoman")["spec"]
    _, registries, redis = servers["egress"]
    assert [each["port"] for each in registries["ports"]] == [443, 8080]
    [counts] = [
        each
        for each in of_kind(everything, "Deployment")
        if each["metadata"]["name"] == "one-dragoman-redis"
    ]
    selector = redis["to"][0]["podSelector"]["matchLabels"]
    assert matches(selector, counts["spec"]["template"]["metadata"]["labels"])
    named_port = container_of(counts)["ports"][0]["containerPort"]
    assert [each["port"] for each in redis["ports"]] == [named_port]
    url = environment_of(everything, _without_others(server_deployments(everything)[0]))[
        "DRAGOMAN_REDIS_URL"
    ]
    assert url == f"redis://{counts['metadata']['name']}:{named_port}/0"
    assert {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}
    } in (servers["ingress"][0]["from"])
    assert chart("networkPolicy.enabled=false", release="three")[0]["kind"] != "NetworkPolicy"


def _without_others(deployment: Manifest) -> Manifest:
    container = container_of(deployment)
    container["env"] = [each for each in container["env"] if "value" in each]
    return deployment


def test_pods_spread_over_zones_and_nodes_with_the_priority_that_is_made(
    everything: list[Manifest],
) -> None:
    asia = pod_of(named(everything, "Deployment", "one-dragoman-asia"))
    spread = {
        each["topologyKey"]: each["whenUnsatisfiable"] for each in asia["topologySpreadConstraints"]
    }
    assert spread == {
        "topology.kubernetes.io/zone": "DoNotSchedule",
        "kubernetes.io/hostname": "ScheduleAnyway",
    }
    [priority] = of_kind(everything, "PriorityClass")
    europe = pod_of(named(everything, "Deployment", "one-dragoman-europe"))
    assert europe["priorityClassName"] == priority["metadata"]["name"]
    assert priority["metadata"]["name"].startswith("words-"), "it is of the whole cluster"
    nowhere = chart("spread.zones=none", "spread.nodes=none", "autoscaling.kind=none")
    [deployment] = server_deployments(nowhere)
    assert "topologySpreadConstraints" not in pod_of(deployment)
    assert deployment["spec"]["replicas"] == 2


def test_each_groups_host_leads_to_its_service(everything: list[Manifest]) -> None:
    ingress = named(everything, "Ingress", "one-dragoman-europe")
    route = named(everything, "HTTPRoute", "one-dragoman-asia")
    [rule] = ingress["spec"]["rules"]
    [path] = rule["http"]["paths"]
    assert rule["host"] == "europe.example.org"
    assert path["backend"]["service"] == {"name": "one-dragoman-europe", "port": {"name": "http"}}
    [backend] = route["spec"]["rules"][0]["backendRefs"]
    service = named(everything, "Service", backend["name"])
    assert backend["name"] == "one-dragoman-asia"
    assert backend["port"] in [each["port"] for each in service["spec"]["ports"]]
