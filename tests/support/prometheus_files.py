"""The files of `monitoring/`: their expressions, and the metrics that these name."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "monitoring"
DASHBOARD = MONITORING / "grafana" / "dashboards" / "dragoman.json"
OPERATIONS = ROOT / "docs" / "operations.md"

_TEXT = re.compile(r'"[^"]*"')
_LABELS = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\b(by|on|without|ignoring)\s*\([^)]*\)")
_NAME = re.compile(r"(?<![\w.])[a-zA-Z_:][\w:]*(?!\w*\s*\()")
_WORDS = frozenset({"and", "or", "unless", "bool", "offset"})


def find_tool(name: str) -> str | None:
    """A program of Prometheus: of the PATH, or where `.ci/prometheus` puts it."""
    return shutil.which(name) or shutil.which(name, path=str(ROOT / "build/prometheus/usr/bin"))


def metric_names(expression: str) -> set[str]:
    """Every metric that a PromQL expression reads."""
    without_text = _TEXT.sub('""', expression)
    return set(_NAME.findall(_LABELS.sub(" ", without_text))) - _WORDS


def exposed_names(exposition: str) -> dict[str, str]:
    """The names under which Prometheus stores what `/metrics` says, each with its family's."""
    names = {}
    for line in exposition.splitlines():
        if line.startswith("# TYPE "):
            family, kind = line.split()[2:]
            parts = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
            names |= {family + part: family for part in parts}
    return names


def dashboard() -> dict[str, Any]:
    """The dashboard, as Grafana reads it."""
    loaded = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def panels() -> Iterator[Mapping[str, Any]]:
    """Every panel, rows included."""
    for panel in dashboard()["panels"]:
        yield panel
        yield from panel.get("panels", [])


def dashboard_expressions() -> list[tuple[str, str]]:
    """Title and expression of every target of every panel."""
    return [
        (panel["title"], target["expr"])
        for panel in panels()
        for target in panel.get("targets", [])
    ]


def rules() -> list[Mapping[str, Any]]:
    """Every alert."""
    groups = yaml.safe_load((MONITORING / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]
