"""Values of the chart that contradict each other, and would stop a server or go unused."""

import re
from pathlib import Path

import pytest

from service.settings import Settings
from support.charts import CHART, chart, needs_helm, refusal, run_helm
from tools.chart_settings import definition

pytestmark = needs_helm

TOTAL = "settings.DRAGOMAN_DOCUMENTS_TOTAL_BYTES"
REPLICAS = "settings.DRAGOMAN_REPLICAS"
WORDS = ["DRAGOMAN_DETECTION", "DRAGOMAN_PIVOT", "DRAGOMAN_TRACES"]
"""Settings that may be `off`, a word that YAML reads as false."""
WORD = ["string", "boolean"]
ROUTER = ("router.enabled=true", "groups.a.replicas=1", "groups.a.tmpSize=2Gi")


def test_uploads_have_to_fit_into_the_tmp_of_the_router_wherever_groups_keep_documents() -> None:
    told = refusal(*ROUTER, f"{TOTAL}=1G")
    words = f"tmpSize is 256Mi; it must be at least {TOTAL} (1G), for the router's pods"
    assert f"- {words}\n" in told
    elsewhere = "settings.DRAGOMAN_DOCUMENTS_FOLDER=/var/cache/dragoman/documents"
    told = refusal(*ROUTER, f"{TOTAL}=1G", elsewhere, "packed.size=2Gi")
    assert f"- {words}\n" in told
    assert chart(*ROUTER, f"{TOTAL}=1G", "tmpSize=1Gi")
    assert chart(*ROUTER, "tmpSize=1Mi", "settings.DRAGOMAN_DOCUMENTS=false")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            ("router.enabled=true", "groups.router.replicas=1"),
            "groups.router has the name of the router's own objects",
        ),
        (
            ("redis.bundled.enabled=true", "groups.redis.replicas=1"),
            "groups.redis has the name of the small Redis's own objects",
        ),
        (
            ("groups.a.replicas=1", "groups.a-pods.replicas=1"),
            "groups.a-pods has the name of the Service of each pod of groups.a",
        ),
        (
            ("router.enabled=true", "groups.a.replicas=1", "groups.a-ready.replicas=1"),
            "groups.a-ready has the name of the Service of each ready pod of groups.a",
        ),
    ],
)
def test_a_group_whose_objects_would_replace_others_is_refused(
    settings: tuple[str, ...], words: str
) -> None:
    assert f"- {words}\n" in refusal(*settings)


def test_a_name_is_free_where_nothing_else_has_it() -> None:
    assert chart("groups.redis.replicas=1", "groups.router.replicas=1", "groups.b-pods.replicas=1")


FEW_SECONDS = "settings.DRAGOMAN_MAX_TIMEOUT_SECONDS=10"
METRICS_KEY = "settings.DRAGOMAN_METRICS_KEY_REQUIRED=true"
NO_KEY_FOR_SCRAPES = "and serviceMonitor.keySecret.name is empty: every scrape would be refused"
FRONTS = ("settings.DRAGOMAN_FRONTS=2", "settings.DRAGOMAN_MEMORY_BUDGET=1G")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            (FEW_SECONDS,),
            (
                "settings.DRAGOMAN_TIMEOUT_SECONDS is 60;"
                " it must be at most settings.DRAGOMAN_MAX_TIMEOUT_SECONDS (10)"
            ),
        ),
        (
            ("groups.a.settings.DRAGOMAN_BEAM_SIZE=5", "settings.DRAGOMAN_MAX_BEAM_SIZE=3"),
            (
                "groups.a.settings.DRAGOMAN_BEAM_SIZE is 5;"
                " it must be at most groups.a.settings.DRAGOMAN_MAX_BEAM_SIZE (3)"
            ),
        ),
        (
            ("router.enabled=true", FEW_SECONDS, "groups.a.settings.DRAGOMAN_TIMEOUT_SECONDS=9"),
            (
                "settings.DRAGOMAN_TIMEOUT_SECONDS is 60;"
                " it must be at most settings.DRAGOMAN_MAX_TIMEOUT_SECONDS (10),"
                " for the router's pods"
            ),
        ),
        (
            (f"{TOTAL}=10M",),
            (
                "settings.DRAGOMAN_DOCUMENTS_TOTAL_BYTES is 10M;"
                " it must be at least settings.DRAGOMAN_DOCUMENTS_MAX_BYTES (20M)"
            ),
        ),
        (
            FRONTS,
            (
                "settings.DRAGOMAN_FRONTS is 2 and settings.DRAGOMAN_MEMORY_BUDGET is set;"
                " with models that are loaded on demand there can be one front"
            ),
        ),
        (
            ("settings.DRAGOMAN_KEY_REQUIRED=true",),
            "settings.DRAGOMAN_KEY_REQUIRED is true, and there are no apiKeys",
        ),
        (
            ("groups.a.settings.DRAGOMAN_METRICS_KEY_REQUIRED=true",),
            "groups.a.settings.DRAGOMAN_METRICS_KEY_REQUIRED is true, and there are no apiKeys",
        ),
        (
            (METRICS_KEY, "apiKeys.existingSecret=keys", "serviceMonitor.enabled=true"),
            f"{METRICS_KEY.removesuffix('=true')} is true, {NO_KEY_FOR_SCRAPES}",
        ),
        (
            (f"groups.a.{METRICS_KEY}", "groups.b.replicas=1", "serviceMonitor.enabled=true"),
            f"groups.a.{METRICS_KEY.removesuffix('=true')} is true, {NO_KEY_FOR_SCRAPES}",
        ),
        (
            ("gpu.enabled=true", "autoscaling.kind=none", "gpu.count=2"),
            (
                "gpu.count is 2, and settings.DRAGOMAN_REPLICAS is 1:"
                " give an engine to each GPU, 2 or auto"
            ),
        ),
        (
            (
                "gpu.enabled=true",
                "autoscaling.kind=none",
                "settings.DRAGOMAN_REPLICAS=4",
            ),
            (
                "gpu.count is 1, and settings.DRAGOMAN_REPLICAS is 4:"
                " give an engine to each GPU, 1 or auto"
            ),
        ),
    ],
)
def test_settings_that_the_server_refuses_or_that_leave_a_gpu_idle_are_refused(
    settings: tuple[str, ...], words: str
) -> None:
    assert f"- {words}\n" in refusal(*settings)


@pytest.mark.parametrize(
    "settings",
    [
        ("settings.DRAGOMAN_KEY_REQUIRED=true", "apiKeys.existingSecret=keys"),
        ("settings.DRAGOMAN_KEY_REQUIRED=false", "settings.DRAGOMAN_FRONTS=2"),
        (METRICS_KEY, "apiKeys.existingSecret=keys"),
        (
            METRICS_KEY,
            "apiKeys.existingSecret=keys",
            "serviceMonitor.enabled=true",
            "serviceMonitor.keySecret.name=metrics-key",
        ),
        ("settings.DRAGOMAN_METRICS_KEY_REQUIRED=false", "serviceMonitor.enabled=true"),
        (FEW_SECONDS, "settings.DRAGOMAN_TIMEOUT_SECONDS=10"),
        (f"{TOTAL}=10M", "settings.DRAGOMAN_DOCUMENTS=false"),
        (f"{TOTAL}=10M", "settings.DRAGOMAN_DOCUMENTS_MAX_BYTES=10485760"),
        ("gpu.count=2", "settings.DRAGOMAN_FRONTS=1", "settings.DRAGOMAN_MEMORY_BUDGET=1G"),
        *(
            ("gpu.enabled=true", "autoscaling.kind=none", "gpu.count=2", f"{REPLICAS}={number}")
            for number in ("auto", 2)
        ),
    ],
)
def test_settings_that_agree_are_taken(settings: tuple[str, ...]) -> None:
    assert chart(*settings)


def test_the_defaults_that_the_chart_compares_with_are_the_servers() -> None:
    text = (CHART / "templates/_contradictions.tpl").read_text(encoding="utf-8")
    [told] = re.findall(r"\$defaults := dict (.*) -}}", text)
    names = re.findall(r'"DRAGOMAN_([A-Z_]+)" "?([0-9]+M?)"?', told)
    assert len(names) == told.count("DRAGOMAN_") == 6
    server = Settings().model_dump()
    for name, value in names:
        given = Settings.model_validate({name.lower(): value}).model_dump()
        assert given[name.lower()] == server[name.lower()], name


def _settings(word: str) -> str:
    """Values in which all of these settings are a word."""
    return "\n".join(["settings:", *(f"  {name}: {word}" for name in WORDS)])


@pytest.mark.parametrize("word", ["off", "no", "on"])
def test_a_word_that_yaml_reads_as_another_thing_is_refused_with_the_remedy(
    tmp_path: Path, word: str
) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(_settings(word))
    done = run_helm("template", "one", str(CHART), f"--values={values}")
    read = "true" if word == "on" else "false"
    for name in WORDS:
        told = f"settings.{name} is {read}, as YAML reads off, no, on and yes: write it in quotes"
        assert f"- {told}\n" in done.stderr
    values.write_text(_settings('"off"'))
    [made] = [each["data"] for each in chart(values=[values]) if each["kind"] == "ConfigMap"]
    assert [made[name] for name in WORDS] == ["off"] * len(WORDS)


def test_every_setting_that_may_be_off_is_one_of_these() -> None:
    properties = definition()["properties"]
    assert isinstance(properties, dict)
    words = [name for name, each in properties.items() if each.get("type") == WORD]
    assert words == WORDS
    off = [name for name, each in properties.items() if "off" in each.get("enum", ())]
    assert {*off, "DRAGOMAN_PIVOT"} == {*WORDS}
