"""The chart's router: its objects find the groups and each other."""

import re

import pytest

from service.cli.main import build_parser
from service.cli.server import route
from service.router.groups import parse_groups
from service.settings import load_settings
from support.charts import named, needs_helm, server_deployments
from support.manifests import Manifest, container_of, environment_of, matches, pod_of
from support.prometheus_files import rules

GROUPS = ("asia", "europe", "large")
ROUTER = "one-dragoman-router"
pytestmark = needs_helm


def test_the_router_asks_every_ready_pod_of_every_group(everything: list[Manifest]) -> None:
    router = named(everything, "Deployment", ROUTER)
    arguments = container_of(router)["args"]
    parsed = build_parser().parse_args(arguments)
    assert parsed.run is route.run
    groups = {group.name: group for group in parse_groups(parsed.groups)}
    assert groups.keys() == set(GROUPS)
    for name, group in groups.items():
        service = named(everything, "Service", group.host)["spec"]
        assert group.host == f"one-dragoman-{name}-ready"
        assert service["clusterIP"] == "None", "an address for each pod"
        assert service.get("publishNotReadyAddresses", False) is False
        [server] = [
            each
            for each in server_deployments(everything)
            if matches(service["selector"], each["spec"]["template"]["metadata"]["labels"])
        ]
        assert server["metadata"]["name"] == f"one-dragoman-{name}"
        # Nothing translates ports of a headless Service: they are the pods'.
        assert [group.port] == [each["containerPort"] for each in container_of(server)["ports"]]
    settings = environment_of(everything, router)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        assert load_settings().port == container_of(router)["ports"][0]["containerPort"]
    assert settings["DRAGOMAN_REQUESTS_PER_MINUTE"] == "100", "the release's"
    assert settings.get("DRAGOMAN_MAX_BODY_BYTES") is None, "a group's own"
    assert container_of(router)["image"] == "registry.example.org/dragoman:cpu"


def test_the_router_has_an_address_is_scaled_scraped_and_let_out_to_theservers(
    everything: list[Manifest],
) -> None:
    labels = named(everything, "Deployment", ROUTER)["spec"]["template"]["metadata"]["labels"]
    for kind, path in (("Service", "selector"), ("PodDisruptionBudget", "selector")):
        selector = named(everything, kind, ROUTER)["spec"][path]
        assert matches(selector.get("matchLabels", selector), labels)
    scaler = named(everything, "HorizontalPodAutoscaler", ROUTER)["spec"]
    assert scaler["scaleTargetRef"]["name"] == ROUTER
    policy = named(everything, "NetworkPolicy", ROUTER)["spec"]
    assert matches(policy["podSelector"]["matchLabels"], labels)
    servers, _ = policy["egress"]
    [to] = servers["to"]
    for each in server_deployments(everything):
        pod = each["spec"]["template"]["metadata"]["labels"]
        assert matches(to["podSelector"]["matchLabels"], pod)
    monitor = named(everything, "ServiceMonitor", ROUTER)["spec"]
    service = named(everything, "Service", ROUTER)["metadata"]["labels"]
    assert matches(monitor["selector"]["matchLabels"], service)
    of_servers = named(everything, "ServiceMonitor", "one-dragoman")["spec"]["selector"]
    assert not matches(of_servers["matchLabels"], service)
    assert (
        named(everything, "Ingress", ROUTER)["spec"]["rules"][0]["host"] == "translate.example.org"
    )
    route_spec = named(everything, "HTTPRoute", ROUTER)["spec"]
    assert route_spec["hostnames"] == ["words.example.org"]
    for backend in (route_spec["rules"][0]["backendRefs"][0]["name"],):
        assert backend == ROUTER


def test_the_router_is_scraped_under_the_job_that_its_alert_selects_by(
    everything: list[Manifest],
) -> None:
    jobs = set()
    for name, service in (("one-dragoman", "one-dragoman-europe"), (ROUTER, ROUTER)):
        label = named(everything, "ServiceMonitor", name)["spec"]["jobLabel"]
        jobs.add(named(everything, "Service", service)["metadata"]["labels"][label])
    selected = re.findall(r'\bup\{job="([^"]+)"\}', " ".join(rule["expr"] for rule in rules()))
    assert set(selected) == jobs == {"dragoman", "router"}


def test_without_a_router_there_is_nothing_of_one(plain: list[Manifest]) -> None:
    names = [each["metadata"]["name"] for each in plain]
    assert not [name for name in names if "router" in name or name.endswith("-ready")]


def test_a_routers_pod_leaves_and_is_probed_as_aservers(everything: list[Manifest]) -> None:
    router = named(everything, "Deployment", ROUTER)
    server = named(everything, "Deployment", "one-dragoman-europe")
    for probe in ("readinessProbe", "livenessProbe", "lifecycle"):
        assert container_of(router)[probe] == container_of(server)[probe]
    grace = "terminationGracePeriodSeconds"
    assert pod_of(router)[grace] == pod_of(server)[grace]
    assert router["spec"]["strategy"] == server["spec"]["strategy"]
