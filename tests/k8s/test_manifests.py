"""The manifests hold together: what one object names, another one has.

Reads the sources, and every rendered overlay where kustomize has been run (`.ci/manifests`).
"""

import os
import re

import pytest
import yaml

from service.app import create_app
from service.environment import ENVIRONMENT_PREFIX
from service.listening import CLOSE_SECONDS
from service.settings import Settings
from support.manifests import (
    K8S,
    Manifest,
    container_of,
    environment_of,
    load,
    matches,
    of_kind,
    pod_of,
    rendered,
    source,
)
from support.running_server import ROOT

INSTANCE = "app.kubernetes.io/instance"
SERVER = {
    "app.kubernetes.io/name": "dragoman",
    INSTANCE: "dragoman",
    "app.kubernetes.io/component": "server",
}
TRAINING = SERVER | {"app.kubernetes.io/component": "training"}
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")

STACKS = {"base": source("base")} | {
    name: documents for name, documents in rendered() if of_kind(documents, "Deployment")
}
TRAININGS = {"source": source("training")} | {
    f"rendered-{name}": documents for name, documents in rendered() if of_kind(documents, "Job")
}
ALL = STACKS | {"training": source("training")} | dict(rendered())
WORKLOADS = [
    pytest.param(documents, workload, id=f"{name}-{workload['kind']}")
    for name, documents in ALL.items()
    for workload in of_kind(documents, "Deployment") + of_kind(documents, "Job")
]

stacks = pytest.mark.parametrize("documents", STACKS.values(), ids=STACKS.keys())
trainings = pytest.mark.parametrize("documents", TRAININGS.values(), ids=TRAININGS.keys())
workloads = pytest.mark.parametrize(("documents", "workload"), WORKLOADS)


def _deployment(documents: list[Manifest]) -> Manifest:
    [deployment] = of_kind(documents, "Deployment")
    return deployment


def _seconds(probe: Manifest) -> float:
    """How long a probe fails before it counts."""
    return float(probe["periodSeconds"] * probe["failureThreshold"])


@stacks
def test_every_selector_matches_the_pods_of_the_deployment(documents: list[Manifest]) -> None:
    labels = _deployment(documents)["spec"]["template"]["metadata"]["labels"]
    server = SERVER | {INSTANCE: labels[INSTANCE]}
    assert matches(server, labels)
    [budget] = of_kind(documents, "PodDisruptionBudget")
    [policy] = of_kind(documents, "NetworkPolicy")
    [service] = of_kind(documents, "Service")
    [spread] = pod_of(_deployment(documents))["topologySpreadConstraints"]
    selectors = [
        _deployment(documents)["spec"]["selector"]["matchLabels"],
        budget["spec"]["selector"]["matchLabels"],
        policy["spec"]["podSelector"]["matchLabels"],
        spread["labelSelector"]["matchLabels"],
        service["spec"]["selector"],
    ]
    for selector in selectors:
        assert selector == server


@pytest.mark.skipif("cpu-second" not in STACKS, reason="rendered by .ci/manifests only")
def test_a_second_instance_in_the_namespace_selects_none_of_the_first() -> None:
    names = {}
    for stack in ("cpu", "cpu-second"):
        deployment = _deployment(STACKS[stack])
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        for other in ("cpu", "cpu-second"):
            [service] = of_kind(STACKS[other], "Service")
            assert matches(service["spec"]["selector"], labels) == (stack == other)
        names[stack] = {(each["kind"], each["metadata"]["name"]) for each in STACKS[stack]}
    assert not names["cpu"] & names["cpu-second"], "one would replace the other"


@trainings
def test_the_policy_of_the_training_selects_the_pods_of_the_job_and_no_server(
    documents: list[Manifest],
) -> None:
    [job] = of_kind(documents, "Job")
    [policy] = of_kind(documents, "NetworkPolicy")
    labels = job["spec"]["template"]["metadata"]["labels"]
    selector = policy["spec"]["podSelector"]["matchLabels"]
    assert selector == TRAINING
    assert matches(selector, labels)
    assert not matches(selector, SERVER)
    assert not matches(SERVER, labels), "the Service would send requests to a training"


@stacks
def test_ports_have_one_name_and_the_number_the_server_listens_on(
    documents: list[Manifest],
) -> None:
    deployment = _deployment(documents)
    [port] = container_of(deployment)["ports"]
    environment = environment_of(documents, deployment)
    assert str(port["containerPort"]) == environment["DRAGOMAN_PORT"]
    assert environment["DRAGOMAN_HOST"] == "0.0.0.0"
    [service] = of_kind(documents, "Service")
    [policy] = of_kind(documents, "NetworkPolicy")
    targets = [each["targetPort"] for each in service["spec"]["ports"]]
    targets += [each["port"] for rule in policy["spec"]["ingress"] for each in rule["ports"]]
    targets += [container_of(deployment)[probe]["httpGet"]["port"] for probe in PROBES]
    assert set(targets) == {port["name"]}


@stacks
def test_probes_ask_for_routes_that_are_there(documents: list[Manifest]) -> None:
    container = container_of(_deployment(documents))
    paths = {probe: container[probe]["httpGet"]["path"] for probe in PROBES}
    assert paths == dict(zip(PROBES, ("/readyz", "/readyz", "/livez"), strict=True))
    assert set(paths.values()) <= set(create_app(Settings()).openapi()["paths"])


@stacks
def test_the_configuration_is_one_the_server_accepts(
    documents: list[Manifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = environment_of(documents, _deployment(documents))
    known = {f"{ENVIRONMENT_PREFIX}{name.upper()}" for name in Settings.model_fields}
    assert environment.keys() <= known
    for name in [name for name in os.environ if name.startswith(ENVIRONMENT_PREFIX)]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    requested = int(container_of(_deployment(documents))["resources"]["requests"]["cpu"])
    assert settings.num_threads == requested - 1


@stacks
def test_the_grace_period_holds_the_pre_stop_wait_the_drain_and_what_closes_after(
    documents: list[Manifest],
) -> None:
    deployment = _deployment(documents)
    environment = environment_of(documents, deployment)
    command, wait = container_of(deployment)["lifecycle"]["preStop"]["exec"]["command"]
    assert command == "sleep"
    grace = float(environment["DRAGOMAN_GRACE_SECONDS"])
    # The sockets' time to close, and the engine's, which is as long.
    needed = float(wait) + grace + 2 * CLOSE_SECONDS
    assert pod_of(deployment)["terminationGracePeriodSeconds"] > needed


@stacks
def test_startup_waits_longer_than_the_server_and_a_rollout_longer_than_both(
    documents: list[Manifest],
) -> None:
    deployment = _deployment(documents)
    start = float(environment_of(documents, deployment)["DRAGOMAN_START_TIMEOUT_SECONDS"])
    startup = _seconds(container_of(deployment)["startupProbe"])
    assert start < startup < deployment["spec"]["progressDeadlineSeconds"]


@stacks
def test_a_pod_leaves_the_service_before_it_is_told_to_stop(documents: list[Manifest]) -> None:
    container = container_of(_deployment(documents))
    wait = float(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert _seconds(container["readinessProbe"]) < wait
    assert _seconds(container["readinessProbe"]) < _seconds(container["livenessProbe"])


@stacks
def test_a_rollout_and_a_drained_node_leave_pods_that_serve(documents: list[Manifest]) -> None:
    deployment = _deployment(documents)
    [autoscaler] = of_kind(documents, "HorizontalPodAutoscaler")
    [budget] = of_kind(documents, "PodDisruptionBudget")
    least = autoscaler["spec"]["minReplicas"]
    rollout = deployment["spec"]["strategy"]["rollingUpdate"]
    assert "replicas" not in deployment["spec"], "applying would undo the autoscaler"
    assert autoscaler["spec"]["scaleTargetRef"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": deployment["metadata"]["name"],
    }
    assert rollout["maxUnavailable"] < least
    assert rollout["maxUnavailable"] + rollout["maxSurge"] >= 1
    assert budget["spec"]["maxUnavailable"] < least


@workloads
def test_containers_run_confined(documents: list[Manifest], workload: Manifest) -> None:
    pod, container = pod_of(workload), container_of(workload)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 10001
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False
    # Otherwise the Service "dragoman" sets DRAGOMAN_PORT=tcp://… in every pod of its namespace.
    assert pod["enableServiceLinks"] is False


@workloads
def test_whatever_is_mounted_is_there(documents: list[Manifest], workload: Manifest) -> None:
    pod, container = pod_of(workload), container_of(workload)
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert {each["name"] for each in container["volumeMounts"]} == volumes.keys()
    claims = {each["metadata"]["name"] for each in of_kind(documents, "PersistentVolumeClaim")}
    named = {
        each["persistentVolumeClaim"]["claimName"]
        for each in volumes.values()
        if "persistentVolumeClaim" in each
    }
    assert named == claims
    secrets = {each["metadata"]["name"] for each in of_kind(documents, "Secret")}
    mounted = {each["secret"]["secretName"] for each in volumes.values() if "secret" in each}
    assert mounted == secrets
    accounts = {each["metadata"]["name"] for each in of_kind(documents, "ServiceAccount")}
    assert pod["serviceAccountName"] in accounts | {"default"}
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert "memory" in container["resources"]["limits"]


def test_the_gpu_overlay_asks_for_one_gpu_and_tolerates_its_nodes() -> None:
    [patch] = load(K8S / "overlays/gpu/deployment.yaml")
    assert container_of(patch)["resources"]["limits"]["nvidia.com/gpu"] == 1
    [toleration] = pod_of(patch)["tolerations"]
    assert toleration == {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    settings = _gpu_settings()
    [compose] = load(ROOT / "docker-compose.yml")
    composed = compose["services"]["dragoman-gpu"]["environment"]
    assert settings["DRAGOMAN_DEVICE"] == "cuda"
    assert {name: str(composed[name]) for name in settings} == settings


@pytest.mark.parametrize(
    ("page", "heading"), [("docs/settings.md", "## On a GPU"), ("docs/deployment.md", "### CUDA")]
)
def test_the_commands_of_the_pages_have_the_numbers_of_the_overlay(page: str, heading: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    assert dict(re.findall(r"(DRAGOMAN_\w+)=(\w+)", re.split(r"\n#+ |: ", text)[0])) == (
        _gpu_settings()
    )


def _gpu_settings() -> dict[str, str]:
    """What the overlay adds to the base's settings."""
    [merged] = load(K8S / "overlays/gpu/kustomization.yaml")
    [generator] = merged["configMapGenerator"]
    return dict(line.split("=") for line in generator["literals"])


def _settings(environment: dict[str, str]) -> Settings:
    values = {
        name.removeprefix(ENVIRONMENT_PREFIX).lower(): value for name, value in environment.items()
    }
    return Settings(**values)  # type: ignore[arg-type]  # pydantic reads the strings


def _queue_target(scaler: Manifest) -> int:
    [pods] = [metric["pods"] for metric in scaler["spec"]["metrics"] if metric["type"] == "Pods"]
    assert pods["metric"]["name"] == "dragoman_pending_segments"
    return int(pods["target"]["averageValue"])


def test_a_gpu_accepts_what_fills_its_slots_twice_one_segment_a_request() -> None:
    settings = _settings(_gpu_settings())
    assert settings.max_rows >= settings.max_slots * settings.beam_size
    assert settings.max_requests >= 2 * settings.max_slots
    assert settings.max_pending_segments >= 8 * settings.max_slots
    assert settings.admit_token_budget >= 16 * settings.max_slots, "a step's worth of newcomers"
    assert settings.max_connections > settings.max_requests, "each request has one"


def test_gpus_scale_by_the_queue_alone_and_by_a_length_that_it_can_have() -> None:
    [scaler] = load(K8S / "overlays/gpu/horizontalpodautoscaler.yaml")
    assert [metric["type"] for metric in scaler["spec"]["metrics"]] == ["Pods"]
    settings = _settings(_gpu_settings())
    target = _queue_target(scaler)
    assert target >= settings.max_slots, "else it scales before a batch is full"
    # Within a tenth of its target an autoscaler does nothing.
    assert 1.5 * target < min(settings.max_requests, settings.max_pending_segments)


@pytest.mark.skipif("gpu" not in STACKS, reason="rendered by .ci/manifests only")
def test_nothing_of_the_bases_metrics_is_left_for_gpus() -> None:
    [scaler] = of_kind(STACKS["gpu"], "HorizontalPodAutoscaler")
    assert [metric["type"] for metric in scaler["spec"]["metrics"]] == ["Pods"]
    settings = _settings(environment_of(STACKS["gpu"], _deployment(STACKS["gpu"])))
    assert settings.max_requests >= 2 * settings.max_slots


def test_the_keys_component_mounts_the_secret_that_it_generates_where_the_server_reads() -> None:
    [component] = load(K8S / "components/api-keys/kustomization.yaml")
    [generator] = component["secretGenerator"]
    assert "options" not in generator, "the hash in its name is what rolls a change out"
    assert "generatorOptions" not in component
    [patch] = load(K8S / "components/api-keys/deployment.yaml")
    [volume] = pod_of(patch)["volumes"]
    assert volume["secret"]["secretName"] == generator["name"]
    [mount] = container_of(patch)["volumeMounts"]
    assert (mount["name"], mount["readOnly"]) == (volume["name"], True)
    assert "subPath" not in mount, "it would never see a change"
    [file] = generator["files"]
    assert file.endswith(".toml")
    [settings] = component["configMapGenerator"]
    assert settings["behavior"] == "merge"
    assert settings["literals"] == [f"DRAGOMAN_API_KEYS_DIR={mount['mountPath']}"]


@pytest.mark.skipif("cpu-keys" not in STACKS, reason="rendered by .ci/manifests only")
def test_a_changed_key_is_another_secret_and_another_pod_template() -> None:
    before, same, after = (
        STACKS[name] for name in ("cpu-keys", "cpu-keys-again", "cpu-keys-changed")
    )
    assert before == same
    [old], [new] = of_kind(before, "Secret"), of_kind(after, "Secret")
    assert old["data"] != new["data"]
    assert old["metadata"]["name"] != new["metadata"]["name"]
    templates = [_deployment(stack)["spec"]["template"] for stack in (before, after)]
    assert templates[0] != templates[1]
    [mounted] = [each["secret"] for each in templates[1]["spec"]["volumes"] if "secret" in each]
    assert mounted["secretName"] == new["metadata"]["name"]


@stacks
def test_an_engine_that_is_busy_makes_the_autoscaler_add_pods(documents: list[Manifest]) -> None:
    """The target is below what a pod uses whose engine is always busy and whose front is idle."""
    [scaler] = of_kind(documents, "HorizontalPodAutoscaler")
    deployment = _deployment(documents)
    environment = environment_of(documents, deployment)
    by_type = {metric["type"]: metric for metric in scaler["spec"]["metrics"]}
    assert len(by_type) == len(scaler["spec"]["metrics"])
    if "Pods" in by_type:
        assert _queue_target(scaler) < _settings(environment).max_requests
    if environment.get("DRAGOMAN_DEVICE") == "cuda":
        return
    requested = float(container_of(deployment)["resources"]["requests"]["cpu"])
    num_threads = int(environment["DRAGOMAN_NUM_THREADS"])
    target = by_type["Resource"]["resource"]["target"]["averageUtilization"] / 100
    assert 0.7 <= target * requested / num_threads <= 0.9


def test_the_readme_tells_the_autoscalers_target() -> None:
    [scaler] = of_kind(source("base"), "HorizontalPodAutoscaler")
    [cpu] = scaler["spec"]["metrics"]
    target = cpu["resource"]["target"]["averageUtilization"]
    readme = (K8S / "README.md").read_text(encoding="utf-8")
    assert f"by CPU ({target} % of the request)" in readme


def test_the_queue_component_adds_one_metric_that_the_server_has() -> None:
    [patch] = yaml.safe_load((K8S / "components/queue-depth/metrics.yaml").read_text())
    name = patch["value"]["pods"]["metric"]["name"]
    instruments = (ROOT / "service/telemetry/engine_metrics.py").read_text(encoding="utf-8")
    assert name.startswith("dragoman_")
    assert f'"{name.removeprefix("dragoman_")}"' in instruments
    [values] = load(K8S / "components/queue-depth/adapter-values.yaml")
    [rule] = values["rules"]["custom"]
    assert rule["seriesQuery"].startswith(f"{name}{{")
    assert int(patch["value"]["pods"]["target"]["averageValue"]) < Settings().max_pending_segments


def test_the_limits_that_the_pages_tell_are_those_of_the_pods() -> None:
    [overlay] = load(K8S / "overlays/gpu/kustomization.yaml")
    [generator] = overlay["configMapGenerator"]
    given = dict(line.split("=") for line in generator["literals"])
    readme = (K8S / "README.md").read_text(encoding="utf-8")
    [paragraph] = [each for each in readme.split("\n\n") if each.startswith("GPU overlay: by")]
    told = {int(number.replace(",", "")) for number in re.findall(r"\d,\d{3}", paragraph)}
    names = ("MAX_SLOTS", "MAX_REQUESTS", "MAX_PENDING_SEGMENTS")
    assert told == {int(given[f"DRAGOMAN_{name}"]) for name in names}
    metrics = (K8S / "components/queue-depth/metrics.yaml").read_text(encoding="utf-8")
    [most] = re.findall(r"a pod accepts ([\d,]+)", metrics)
    assert int(most.replace(",", "")) == Settings.model_fields["max_pending_segments"].default
