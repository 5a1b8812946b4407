"""The chart's Services and policies: who reaches what, and that what is opened is let in."""

import pytest

from support.charts import chart, named, needs_helm, notes, refusal
from support.manifests import Manifest, of_kind, source

pytestmark = needs_helm

GROUPS = ("groups.a.replicas=1", "groups.b.replicas=1")
FROM_ALL = "networkPolicy.from[0].ipBlock.cidr=0.0.0.0/0"


def _services(documents: list[Manifest]) -> dict[str, Manifest]:
    """What is said of each Service that is not headless, by the last part of its name."""
    return {
        each["metadata"]["name"].removeprefix("one-dragoman").lstrip("-"): each["spec"]
        for each in of_kind(documents, "Service")
        if each["spec"].get("clusterIP") != "None"
    }


@pytest.mark.parametrize("kind", ["LoadBalancer", "NodePort"])
def test_a_service_that_is_open_to_the_outside_needs_someone_whom_the_policy_lets_in(
    kind: str,
) -> None:
    words = f"service.type is {kind}, and the NetworkPolicy lets nobody in from outside"
    assert f"- {words}" in refusal(f"service.type={kind}")
    assert chart(f"service.type={kind}", FROM_ALL)
    assert chart(f"service.type={kind}", "networkPolicy.enabled=false")


INGRESS = ("ingress.enabled=true", "ingress.host=x.org")
HTTP_ROUTE = (
    "httpRoute.enabled=true",
    "httpRoute.parentRefs[0].name=public",
    "httpRoute.hostnames[0]=x.org",
)
ROUTER_INGRESS = [f"router.{each}" for each in INGRESS]
LABEL = "kubectl label namespace NAMESPACE dragoman-client=true\n"


@pytest.mark.parametrize(
    ("route", "is_named"),
    [
        (INGRESS, "one-dragoman"),
        (HTTP_ROUTE, "one-dragoman"),
        (("groups.b.replicas=1", *(f"groups.a.{each}" for each in HTTP_ROUTE)), "one-dragoman-a"),
        (("router.enabled=true", *GROUPS, *ROUTER_INGRESS), "one-dragoman-router"),
    ],
)
def test_an_install_with_a_route_says_how_its_gateway_is_let_in(
    route: tuple[str, ...], is_named: str
) -> None:
    told = notes(*route)
    assert LABEL in told
    assert f"\n{is_named} then get no answer" in told
    assert told.count(LABEL) == 1
    assert LABEL not in notes(*route, FROM_ALL)


def test_an_install_says_nothing_of_gateways_where_none_is_shut_out() -> None:
    assert LABEL not in notes()
    assert LABEL not in notes(*INGRESS, "networkPolicy.enabled=false")


def test_behind_a_router_the_groups_are_the_clusters_alone() -> None:
    outside = ("service.type=LoadBalancer", "service.externalTrafficPolicy=Local", FROM_ALL)
    services = _services(chart(*GROUPS, *outside, "router.enabled=true"))
    types = {name: each["type"] for name, each in services.items()}
    assert types == {"a": "ClusterIP", "b": "ClusterIP", "router": "LoadBalancer"}
    assert services["router"]["externalTrafficPolicy"] == "Local"
    assert "externalTrafficPolicy" not in services["a"]
    services = _services(chart(*GROUPS, *outside))
    assert {each["type"] for each in services.values()} == {"LoadBalancer"}
    assert {each["externalTrafficPolicy"] for each in services.values()} == {"Local"}
    assert "- service.externalTrafficPolicy is Local, and service.type is ClusterIP" in refusal(
        "service.externalTrafficPolicy=Local"
    )


def test_what_a_client_sends_is_spread_unless_it_is_to_come_back_to_its_documents() -> None:
    [base] = of_kind(source("base"), "Service")
    assert base["spec"]["sessionAffinity"] == "None"
    assert _services(chart())[""]["sessionAffinity"] == "None"
    services = _services(chart(*GROUPS, "service.sessionAffinity=ClientIP"))
    assert [each["sessionAffinity"] for each in services.values()] == ["ClientIP", "ClientIP"]


def test_a_routers_few_pods_reach_all_of_a_groups() -> None:
    services = _services(chart(*GROUPS, "router.enabled=true"))
    affinities = {name: each.get("sessionAffinity") for name, each in services.items()}
    assert affinities == {"a": "None", "b": "None", "router": None}


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("redis://r.example.org:6380/0", 6380),
        ("rediss://user:p%2Fa:9@r.example.org:6381", 6381),
        ("redis://r.example.org/0", 6379),
        ("redis://r", 6379),
        ("redis://[::1]:6382/0?timeout=1:2", 6382),
        ("redis://[::1]", 6379),
    ],
)
def test_servers_are_let_out_to_the_port_of_the_redis_that_is_named(url: str, port: int) -> None:
    policy = named(chart(f"redis.url={url}"), "NetworkPolicy", "one-dragoman")
    _, redis = policy["spec"]["egress"]
    assert redis == {"ports": [{"port": port, "protocol": "TCP"}]}


def test_the_port_of_a_secrets_redis_is_a_value_and_sockets_are_refused() -> None:
    secret = ("redis.existingSecret.name=counts", "redis.port=6390")
    policy = named(chart(*secret), "NetworkPolicy", "one-dragoman")
    assert policy["spec"]["egress"][1]["ports"] == [{"port": 6390, "protocol": "TCP"}]
    assert "at '/redis/url'" in refusal("redis.url=unix:///run/redis.sock")
