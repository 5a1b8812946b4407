"""Values of the chart: what is refused, by its name, and that nothing is left unexplained."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
import pytest
import yaml

from service.settings import Settings
from support.charts import CHART, EVERYTHING, chart, named, needs_helm, refusal
from support.manifests import load
from support.running_server import ROOT
from tools.chart_settings import OWNED_BY_THE_CHART, definition

SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema_rs.Draft7Validator(SCHEMA)
[VALUES] = load(CHART / "values.yaml")
SETTINGS_PAGE = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
README = (CHART / "README.md").read_text(encoding="utf-8")


def _with(path: str, value: object) -> dict[str, Any]:
    """The default values with one of them changed."""
    values: dict[str, Any] = json.loads(json.dumps(VALUES))
    *parents, last = path.split(".")
    inner = values
    for parent in parents:
        inner = inner.setdefault(parent, {})
    inner[last] = value
    return values


def _problems(values: object) -> list[str]:
    return [
        f"{'.'.join(map(str, error.instance_path))}: {error.message}"
        for error in VALIDATOR.iter_errors(values)
    ]


def test_the_settings_of_the_schema_are_the_servers() -> None:
    command = "python -m tools.chart_settings k8s/chart/values.schema.json"
    assert SCHEMA["definitions"]["settings"] == definition(), f"run {command}"


def test_the_defaults_and_everything_at_once_are_valid() -> None:
    assert _problems(VALUES) == []
    [everything] = load(EVERYTHING)
    assert _problems(everything) == []


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("replica", 3, "'replica'"),
        ("settings.DRAGOMAN_PIVO", "en", "'DRAGOMAN_PIVO'"),
        ("settings.DRAGOMAN_MAX_ROWS", 1, "settings.DRAGOMAN_MAX_ROWS: 1 is less than"),
        ("settings.DRAGOMAN_SEGMENT_CACHE", "much", "settings.DRAGOMAN_SEGMENT_CACHE: "),
        ("settings.DRAGOMAN_MAX_BODY_BYTES", "1m", "settings.DRAGOMAN_MAX_BODY_BYTES: "),
        ("settings.DRAGOMAN_MAX_BODY_BYTES", 67108865, "settings.DRAGOMAN_MAX_BODY_BYTES: 671"),
        ("settings.DRAGOMAN_MAX_HEADER_BYTES", 1023, "settings.DRAGOMAN_MAX_HEADER_BYTES: 1023"),
        ("settings.DRAGOMAN_MEMORY_BUDGET", 0, "settings.DRAGOMAN_MEMORY_BUDGET: 0"),
        ("settings.DRAGOMAN_REDIS_URL", "redis://x", "'DRAGOMAN_REDIS_URL'"),
        ("settings.DRAGOMAN_ISA", "avx3", "settings.DRAGOMAN_ISA: "),
        ("settings.DRAGOMAN_CACHE", "/tmp", "'DRAGOMAN_CACHE'"),
        ("env", [{"name": "DRAGOMAN_PIVOT"}], "env.0.name: "),
        ("models.source", "s3", "models.source: "),
        ("models.path", "../secrets/", "models.path: "),
        ("models.pull.names", [{"nam": "x"}], "models.pull.names.0: "),
        ("models.pull.names", [{"name": "--to=/"}], "models.pull.names.0.name: "),
        ("models.pull.env", {"LD_PRELOAD": "x"}, "models.pull.env: "),
        ("settings.DRAGOMAN_REPLICAS", "all", "settings.DRAGOMAN_REPLICAS: "),
        ("settings.DRAGOMAN_REPLICAS", 0, "settings.DRAGOMAN_REPLICAS: "),
        ("settings.DRAGOMAN_FRONTS", 65, "settings.DRAGOMAN_FRONTS: 65"),
        ("packed.size", "1G", "packed.size: "),
        ("packed.medium", "Disk", "packed.medium: "),
        ("gpu.resource", "nvidia.com/mig_1", "gpu.resource: "),
        ("resources.requests.cpu", "500m", "resources.requests.cpu: "),
        ("autoscaling.kind", "queue", "autoscaling.kind: "),
        ("spread.zones", "Never", "spread.zones: "),
        ("priorityClass.value", 2_000_000_000, "priorityClass.value: 2000000000"),
        ("redis.url", "http://redis", "redis.url: "),
        ("redis.bundled.memory", "0Mi", "redis.bundled.memory: "),
        ("redis.bundled.memory", "1.5Gi", "redis.bundled.memory: "),
        ("resources.requests.memory", "1K", "resources.requests.memory: "),
        ("ingress.host", "Example.org", "ingress.host: "),
        ("httpRoute.timeouts.request", "5 minutes", "httpRoute.timeouts.request: "),
        ("router.httpRoute.timeouts.request", 330, "router.httpRoute.timeouts.request: 330"),
        ("groups.a.httpRoute.timeouts.idle", "1s", "'idle'"),
        ("podLabels", {"app.kubernetes.io/instance": "x"}, "podLabels: "),
        ("groups.a.service.port", 1, "groups.a: "),
        ("groups.A.replicas", 1, "groups: "),
        ("reload.schedule", "nightly", "reload.schedule: "),
        ("router.replicas", 2, "'replicas'"),
        ("router.cpuPercent", 0, "router.cpuPercent: 0"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(path: str, value: object, words: str) -> None:
    problems = _problems(_with(path, value))
    assert any(words in problem for problem in problems), problems


def test_bytes_have_a_unit_or_none() -> None:
    for name in ("MAX_BODY_BYTES", "MAX_KEYLESS_BODY_BYTES", "MAX_HEADER_BYTES", "SEGMENT_CACHE"):
        for value in (65536, "65536", "64K", "0.5MiB"):
            assert _problems(_with(f"settings.DRAGOMAN_{name}", value)) == []


def test_every_instruction_set_that_is_built_anywhere_can_be_asked_for() -> None:
    built: set[str] = set()
    for node in ast.parse((ROOT / "setup.py").read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="INSTRUCTION_SETS")], value=ast.Dict(values=each)):
                levels = [one.keys for one in each if isinstance(one, ast.Dict)]
                names = [ast.literal_eval(name) for keys in levels for name in keys if name]
                built.update(name.replace("_", "-") for name in names)
    assert {"avx2", "neon-i8mm"} < built
    assert built == {
        name
        for name in SCHEMA["definitions"]["settings"]["properties"]["DRAGOMAN_ISA"]["enum"]
        if _problems(_with("settings.DRAGOMAN_ISA", name)) == []
    }
    [row] = [line for line in SETTINGS_PAGE.splitlines() if line.startswith("| `DRAGOMAN_ISA`")]
    assert built == set(re.findall("`((?:avx|neon)[a-z0-9-]*)`", row))


@needs_helm
def test_helm_reads_the_schema_as_it_is_meant() -> None:
    assert "'DRAGOMAN_PIVO' not allowed" in refusal("settings.DRAGOMAN_PIVO=en")
    assert "at '/groups/a': additional properties 'service'" in refusal("groups.a.service.port=1")
    assert "at '/env/0/name'" in refusal("env[0].name=DRAGOMAN_PIVOT")
    assert "requires kubeVersion: >=1.31" in refusal("replicas=1,service.port=1", version="1.30")


@needs_helm
def test_values_that_contradict_each_other_are_all_told() -> None:
    told = refusal(
        "models.source=pvc",
        "gpu.enabled=true",
        "ingress.enabled=true",
        "reload.enabled=true",
        "redis.url=redis://x",
        "redis.bundled.enabled=true",
        "autoscaling.minReplicas=9",
    )
    for words in (
        "redis.url, redis.bundled are all given",
        "reload.enabled needs reload.keySecret.name",
        "reload.enabled needs apiKeys",
        "models.source is pvc, and models.pvc.claimName is empty",
        "autoscaling.kind is cpu, whose load says nothing of a GPU's",
        "ingress.enabled needs ingress.host",
        "autoscaling.minReplicas is 9; it must be at most maxReplicas (8)",
    ):
        assert f"- {words}" in told
    same = ("ingress.enabled=true", "ingress.host=x.org", "groups.a.replicas=1")
    told = refusal(*same, "groups.b.replicas=1")
    assert "a and b have the same host x.org" in told
    told = refusal("router.enabled=true", "router.minReplicas=9", "router.ingress.enabled=true")
    for words in (
        "router.enabled needs groups",
        "router.minReplicas is 9; it must be at most maxReplicas (8)",
        "router.ingress.enabled needs router.ingress.host",
    ):
        assert f"- {words}" in told
    told = refusal(
        "router.enabled=true",
        "router.ingress.enabled=true",
        "router.ingress.host=x.org",
        "router.httpRoute.enabled=true",
        "groups.router.ingress.enabled=true",
        "groups.router.ingress.host=x.org",
    )
    assert "groups.router has the name of the router's own objects" in told
    assert "router.httpRoute.enabled needs router.httpRoute.parentRefs" in told
    assert "groups.a.models.source is image, and groups.a.models.image" in refusal(
        "groups.a.models.source=image"
    )
    told = refusal("groups.a.settings.DRAGOMAN_REPLICAS=auto")
    assert "groups.a.settings.DRAGOMAN_REPLICAS is auto, which would count the node's" in told
    assert "has 68 characters; the limit is 63" in refusal(f"fullnameOverride={'x' * 63}")


MORE_THAN_THE_LIMIT = [
    (["resources.requests.memory=3Gi"], "", "3Gi", "2Gi"),
    (["resources.requests.memory=2148M"], "", "2148M", "2Gi"),
    (["resources.limits.memory=0.5Gi"], "", "1Gi", "0.5Gi"),
    (
        ["groups.a.gpu.enabled=true", "groups.a.resources.requests.memory=9Gi"],
        "groups.a.",
        "9Gi",
        "8Gi",
    ),
    (
        ["groups.a.models.source=pull", "groups.a.models.pull.resources.requests.memory=5Gi"],
        "groups.a.models.pull.",
        "5Gi",
        "4Gi",
    ),
    (
        ["router.enabled=true", "router.resources.requests.memory=1025Mi"],
        "router.",
        "1025Mi",
        "1Gi",
    ),
]


@needs_helm
@pytest.mark.parametrize(("settings", "at", "asked", "limit"), MORE_THAN_THE_LIMIT)
def test_a_request_for_more_memory_than_the_limit_is_refused(
    settings: list[str], at: str, asked: str, limit: str
) -> None:
    assert (
        f"- {at}resources.requests.memory is {asked};"
        f" it must be at most {at}resources.limits.memory ({limit})"
    ) in refusal(*settings)


@needs_helm
@pytest.mark.parametrize(
    "settings",
    [
        ("resources.requests.memory=2147M",),
        ("resources.requests.memory=2097152Ki",),
        ("resources.requests.memory=3Gi", "resources.limits.memory=3221226k"),
        ("gpu.enabled=true", "autoscaling.kind=none", "resources.requests.memory=8Gi"),
    ],
)
def test_a_request_for_as_much_memory_as_the_limit_is_taken(settings: tuple[str, ...]) -> None:
    assert chart(*settings)


ROUTE = {"enabled": "true", "parentRefs[0].name": "public", "hostnames[0]": "x.org"}


def _route(at: str, **timeouts: str) -> list[str]:
    """An HTTPRoute of a release, a group or a router with these timeouts."""
    said = ROUTE | {f"timeouts.{name}": value for name, value in timeouts.items()}
    return [f"{at}httpRoute.{name}={value}" for name, value in said.items()]


@needs_helm
@pytest.mark.parametrize(
    ("at", "beside", "name"),
    [
        ("", [], "one-dragoman"),
        ("groups.a.", [], "one-dragoman-a"),
        ("router.", ["router.enabled=true", "groups.a.replicas=1"], "one-dragoman-router"),
    ],
)
def test_a_route_has_the_timeouts_that_it_is_given_and_else_its_gateways(
    at: str, beside: list[str], name: str
) -> None:
    for timeouts in ({}, {"request": "330s"}, {"request": "6m", "backendRequest": "5m30s"}):
        route = named(chart(*beside, *_route(at, **timeouts)), "HTTPRoute", name)
        [rule] = route["spec"]["rules"]
        assert rule.get("timeouts", {}) == timeouts
        assert ("timeouts" in rule) == bool(timeouts)
    longer = _route(at, request="90s", backendRequest="1m30s1ms")
    words = f"- {at}httpRoute.timeouts.backendRequest is 1m30s1ms; it must be at most"
    assert f"{words} {at}httpRoute.timeouts.request (90s)" in refusal(*beside, *longer)


@needs_helm
@pytest.mark.parametrize(
    ("request_timeout", "backend"), [("90s", "1m30s"), ("0s", "10s"), ("1h", "0s"), ("09s", "8s")]
)
def test_a_gateway_may_wait_as_long_for_a_server_as_its_client_for_it(
    request_timeout: str, backend: str
) -> None:
    assert chart(*_route("", request=request_timeout, backendRequest=backend))


TOTAL = "settings.DRAGOMAN_DOCUMENTS_TOTAL_BYTES"
FOLDER = "settings.DRAGOMAN_DOCUMENTS_FOLDER"


@needs_helm
@pytest.mark.parametrize(
    ("settings", "at", "size", "total"),
    [
        (("tmpSize=127Mi",), "", "127Mi", "128M"),
        (("tmpSize=134M",), "", "134M", "128M"),
        ((f"{TOTAL}=1G",), "", "256Mi", "1G"),
        ((f"{TOTAL}=268435457",), "", "256Mi", "268435457"),
        ((f"{TOTAL}=257MiB", f"{FOLDER}=/tmp/kept"), "", "256Mi", "257MiB"),
        (("groups.a.tmpSize=64Mi", "groups.b.replicas=1"), "groups.a.", "64Mi", "128M"),
        ((f"groups.a.{TOTAL}=0.5GB",), "groups.a.", "256Mi", "0.5GB"),
    ],
)
def test_documents_that_do_not_fit_into_tmp_are_refused(
    settings: tuple[str, ...], at: str, size: str, total: str
) -> None:
    told = refusal(*settings)
    assert f"- {at}tmpSize is {size}; it must be at least {at}{TOTAL} ({total})\n" in told
    assert told.count("tmpSize") == 1
    assert Settings.model_fields["documents_total_bytes"].default == 128 * 2**20


@needs_helm
@pytest.mark.parametrize(
    "settings",
    [
        ("tmpSize=128Mi",),
        ("tmpSize=135M",),
        ("tmpSize=1Gi", f"{TOTAL}=1073741824"),
        ("tmpSize=1Mi", "settings.DRAGOMAN_DOCUMENTS=false"),
        (f"{TOTAL}=1G", f"{FOLDER}=/var/cache/dragoman/documents", "packed.size=1Gi"),
    ],
)
def test_documents_that_fit_or_are_elsewhere_are_taken(settings: tuple[str, ...]) -> None:
    assert chart(*settings)


def _leaves(values: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield f"{before}{name}"


def test_the_readme_explains_every_value_and_none_that_is_not_there() -> None:
    table = README.partition("## Every value")[2]
    told = {
        path
        for line in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for path in re.findall(r"`([^`]+)`", line)
    }
    assert told == set(_leaves(VALUES))


def test_values_of_a_group_are_those_that_are_marked_so() -> None:
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    marked = set(re.findall(r"^(\w+):.*# \(group\)$", text, re.MULTILINE))
    assert marked == SCHEMA["definitions"]["group"]["properties"].keys()
    assert yaml.safe_load(text).keys() == SCHEMA["properties"].keys() - {"global"}


def test_the_versions_are_the_projects() -> None:
    [described] = load(CHART / "Chart.yaml")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert described["version"] == described["appVersion"] == project["version"]


def test_what_the_chart_derives_is_a_setting() -> None:
    text = (CHART / "templates/_settings.tpl").read_text(encoding="utf-8")
    text += (CHART / "templates/deployment.yaml").read_text(encoding="utf-8")
    written = set(re.findall(r"DRAGOMAN_([A-Z_]+)", text))
    properties = SCHEMA["definitions"]["settings"]["properties"]
    known = {name.removeprefix("DRAGOMAN_") for name in properties}
    assert written <= known | {name.upper() for name in OWNED_BY_THE_CHART} | {"CACHE"}
