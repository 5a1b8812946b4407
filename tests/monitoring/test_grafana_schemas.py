"""Grafana's files have the form that Grafana reads; it would ignore most of what has not.

The schemas lie in `schemas/`, one for each folder of provisioning and one for the dashboard.
"""

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from support.prometheus_files import DASHBOARD, MONITORING, panels

SCHEMAS = Path(__file__).parent / "schemas"
GRAFANA = MONITORING / "grafana"
PROVISIONING = sorted(GRAFANA.glob("provisioning/*/*"))
DATASOURCE = GRAFANA / "provisioning/datasources/prometheus.yml"
PROVIDER = GRAFANA / "provisioning/dashboards/dragoman.yml"
REMOVED = object()

Place = tuple[str | int, ...]


def _schema_of(path: Path) -> dict[str, Any]:
    """That of the dashboard, or of the folder of provisioning in which a file lies."""
    name = "dashboard" if path.suffix == ".json" else path.parent.name
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    return schema


def _faults(path: Path, document: object) -> list[tuple[Place, str]]:
    """Where a document of that file breaks the schema, and how."""
    validator = jsonschema_rs.Draft202012Validator(_schema_of(path))
    return [(tuple(each.instance_path), each.message) for each in validator.iter_errors(document)]


def _load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))  # JSON is YAML


def _damaged(document: object, place: Place, value: object) -> object:
    """The document with another value at that place, or without one."""
    damaged = copy.deepcopy(document)
    holder: Any = damaged
    for key in place[:-1]:
        holder = holder[key]
    if value is REMOVED:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    return damaged


@pytest.mark.parametrize("path", [*PROVISIONING, DASHBOARD], ids=lambda path: path.name)
def test_a_file_of_grafana_has_the_form_of_its_schema(path: Path) -> None:
    assert _faults(path, _load(path)) == []


def test_both_kinds_of_provisioning_are_there_and_nothing_else_is() -> None:
    assert {DATASOURCE, PROVIDER} == set(PROVISIONING)
    assert sorted(GRAFANA.glob("dashboards/*")) == [DASHBOARD]


def test_the_panel_types_of_the_schema_are_those_that_are_used() -> None:
    allowed = set(_schema_of(DASHBOARD)["$defs"]["panel"]["properties"]["type"]["enum"])
    assert allowed | {"row"} == {panel["type"] for panel in panels()}


@pytest.mark.parametrize(
    ("path", "place", "value"),
    [
        (DATASOURCE, ("apiVersion",), REMOVED),
        (DATASOURCE, ("apiVersion",), 2),
        (DATASOURCE, ("datasource",), []),
        (DATASOURCE, ("datasources",), []),
        (DATASOURCE, ("datasources", 0, "type"), "promtheus"),
        (DATASOURCE, ("datasources", 0, "access"), "server"),
        (DATASOURCE, ("datasources", 0, "url"), REMOVED),
        (DATASOURCE, ("datasources", 0, "default"), True),
        (DATASOURCE, ("datasources", 0, "jsonData", "timeInterval"), 15),
        (PROVIDER, ("apiVersion",), REMOVED),
        (PROVIDER, ("apiVersion",), "1"),
        (PROVIDER, ("providers",), REMOVED),
        (PROVIDER, ("providers", 0, "type"), "fil"),
        (PROVIDER, ("providers", 0, "options", "path"), REMOVED),
        (PROVIDER, ("providers", 0, "options", "path"), "dashboards"),
        (PROVIDER, ("providers", 0, "allowUIUpdates"), False),
        (DASHBOARD, ("schemaVersion",), REMOVED),
        (DASHBOARD, ("schemaVersion",), "39"),
        (DASHBOARD, ("schemaVersion",), 16),
        (DASHBOARD, ("uid",), "a dashboard"),
        (DASHBOARD, ("__inputs",), []),
        (DASHBOARD, ("templating", "list", 1, "type"), "qery"),
        (DASHBOARD, ("panels", 0, "gridPos"), REMOVED),
        (DASHBOARD, ("panels", 0, "targets"), []),
        (DASHBOARD, ("panels", 8, "type"), "timeserie"),
        (DASHBOARD, ("panels", 8, "type"), "graph"),
        (DASHBOARD, ("panels", 8, "type"), REMOVED),
        (DASHBOARD, ("panels", 8, "gridpos"), {"h": 8, "w": 8, "x": 0, "y": 6}),
        (DASHBOARD, ("panels", 8, "gridPos", "w"), 25),
        (DASHBOARD, ("panels", 8, "datasource"), "Prometheus"),
        (DASHBOARD, ("panels", 8, "targets"), REMOVED),
        (DASHBOARD, ("panels", 8, "targets", 0, "expr"), REMOVED),
        (DASHBOARD, ("panels", 8, "targets", 0, "refId"), REMOVED),
        (DASHBOARD, ("panels", 8, "targets", 0, "legend"), "{{route}}"),
        (DASHBOARD, ("panels", 8, "fieldConfig", "defaults", "units"), "s"),
        (DASHBOARD, ("panels", 8, "fieldConfig", "defaults", "thresholds", "mode"), "relative"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_a_damaged_file_is_refused_where_it_is_damaged(
    path: Path, place: Place, value: object
) -> None:
    places = {place for place, _ in _faults(path, _damaged(_load(path), place, value))}
    # A key that is missing or unknown is a fault of what holds it.
    assert places in ({place}, {place[:-1]})
