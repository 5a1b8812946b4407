"""Kinds that others define, which Kubernetes' own schemas do not know.

Owns what our manifests may have of them (`tests/k8s/schemas`: every field that is used, and no
other), and the comparison of that with the definitions that their makers install in a cluster,
where DRAGOMAN_CRDS names a folder with these.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs

from support.manifests import Manifest, load
from support.running_server import ROOT

SCHEMAS = ROOT / "tests/k8s/schemas"
DEFINITIONS_VARIABLE = "DRAGOMAN_CRDS"

Schema = dict[str, Any]

_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 253, "pattern": "^[a-z0-9.-]+$"},
        "namespace": {"type": "string", "minLength": 1},
        "labels": _TEXTS,
        "annotations": _TEXTS,
    },
}
_CONSTRAINTS = ("type", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")


def custom_kinds() -> dict[str, Schema]:
    """The schema of each kind."""
    return {path.stem: _whole(path) for path in sorted(SCHEMAS.glob("*.yaml"))}


def _whole(path: Path) -> Schema:
    [ours] = load(path)
    return closed(
        {
            "type": "object",
            "required": ["apiVersion", "kind", "metadata", "spec"],
            "properties": {
                "apiVersion": {"const": ours["apiVersion"]},
                "kind": {"const": path.stem},
                "metadata": _METADATA,
                "spec": ours["spec"],
            },
        }
    )


def closed(schema: Schema) -> Schema:
    """The same schema, for which a field that it does not know is an error."""
    inner = dict(schema)
    if "(?i)" in inner.get("pattern", ""):  # Go's way to say it, which JSON Schema has not
        del inner["pattern"]
    for name in ("items", "additionalProperties"):
        if isinstance(inner.get(name), dict):
            inner[name] = closed(inner[name])
    if "properties" in inner:
        inner["properties"] = {name: closed(one) for name, one in inner["properties"].items()}
        if not inner.get("x-kubernetes-preserve-unknown-fields"):
            inner.setdefault("additionalProperties", False)
    return inner


def problems(schema: Schema, document: Manifest) -> list[str]:
    """What an object has that its schema does not allow, with the place."""
    validator = jsonschema_rs.Draft7Validator(schema)
    return [
        f"{'.'.join(map(str, error.instance_path))}: {error.message}"
        for error in validator.iter_errors(document)
    ]


def definitions() -> dict[str, tuple[str, Schema]]:
    """By kind: the apiVersion and the schema that its makers define; empty where none are named."""
    named = os.environ.get(DEFINITIONS_VARIABLE)
    found = {}
    for path in sorted(Path(named).glob("*.yaml")) if named else ():
        for spec in (one["spec"] for one in load(path) if one["kind"].endswith("Definition")):
            for version in spec["versions"]:
                api = f"{spec['group']}/{version['name']}"
                found[f"{spec['names']['kind']} {api}"] = version["schema"]["openAPIV3Schema"]
    return {
        kind: (api, found[f"{kind} {api}"])
        for kind in custom_kinds()
        for api in [load(SCHEMAS / f"{kind}.yaml")[0]["apiVersion"]]
        if f"{kind} {api}" in found
    }


def looser(ours: Mapping[str, Any], theirs: Mapping[str, Any], at: str) -> Iterator[str]:
    """Where our schema allows something that theirs does not."""
    for name in _CONSTRAINTS:
        if name in theirs and not _holds(name, ours.get(name), theirs[name]):
            yield f"{at}: {name} is {ours.get(name)!r}, and {theirs[name]!r} with its makers"
    if "enum" in theirs and not {*ours.get("enum", ["?"])} <= {*theirs["enum"]}:
        yield f"{at}: enum is {ours.get('enum')}, and {theirs['enum']} with its makers"
    if "pattern" in theirs and "pattern" not in ours:
        yield f"{at}: there is no pattern, and {theirs['pattern']!r} with its makers"
    for name in {*theirs.get("required", ())} - {*ours.get("required", ())}:
        yield f"{at}: {name} is required by its makers"
    if isinstance(theirs.get("items"), dict):
        yield from looser(ours["items"], theirs["items"], f"{at}[]")
    rest = theirs.get("additionalProperties")
    if isinstance(ours.get("additionalProperties"), dict):
        yield from looser(ours["additionalProperties"], rest or {"type": "none"}, f"{at}.*")
    known = theirs.get("properties", {})
    for name, schema in ours.get("properties", {}).items():
        if name not in known:
            yield f"{at}: its makers do not know {name}"
        elif name != "template":  # of pods: Kubernetes' own
            yield from looser(schema, known[name], f"{at}.{name}")


def _holds(name: str, ours: Any, theirs: Any) -> bool:
    if name == "type" or ours is None:
        return bool(ours == theirs)
    return bool(ours >= theirs if name.startswith("min") else ours <= theirs)
