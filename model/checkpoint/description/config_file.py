"""config.json: read, checked and written.

Owns the file, in every schema that there has been. It does not own the description's types
(`model.checkpoint.manifest`), the schemas' keys (`model.checkpoint.description.migrations`), the
checks between the parts (`model.checkpoint.description.consistency`) or the other files
(`model.checkpoint.files.verification`). Imports no torch.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import TypeVar

from model.checkpoint.description.consistency import language_problems, manifest_problems
from model.checkpoint.description.migrations import (
    NEWEST_SCHEMA,
    SCHEMA_1_KEYS,
    JsonObject,
    key_problems,
    migrate,
)
from model.checkpoint.description.strict_json import format_json, parse_json
from model.checkpoint.files.checksums import read_limited, read_listing, verify_files
from model.checkpoint.files.verification import verify_parts
from model.checkpoint.manifest import CONFIG_FILE, Manifest
from model.conversion import ConversionError, Problem, convert, is_default
from model.errors import CheckpointError, ConfigError, shown
from model.system.paths import is_folder
from model.text.languages.tags import all_pairs

MAX_CONFIG_BYTES = 16 * 2**20

T = TypeVar("T")


def read_manifest(directory: Path, *, verify: bool = True) -> Manifest:
    """Read and check config.json.

    Args:
        directory: The checkpoint.
        verify: Also compare every file with its checksum, which reads all of them.

    Raises:
        CheckpointError: A file is missing, damaged or of another version; config.json has
            missing, unknown or impossible values, all of which the message lists.
    """
    path = directory / CONFIG_FILE
    if not is_folder(directory, CheckpointError):
        raise CheckpointError(directory, "no such checkpoint directory")
    listed = read_listing(directory) if verify else {}
    if CONFIG_FILE in listed:  # what it says bounds what is read of the others
        sizes = {CONFIG_FILE: (0, MAX_CONFIG_BYTES)}
        verify_files(directory, {CONFIG_FILE: listed.pop(CONFIG_FILE)}, sizes, max_other_bytes=0)
    elif verify:
        raise CheckpointError(path, "has no line in the checksums")
    manifest = _parse_manifest(path, read_limited(path, MAX_CONFIG_BYTES))
    if verify:
        verify_parts(directory, manifest, listed)
    return manifest


def format_manifest(manifest: Manifest) -> bytes:
    """The bytes of config.json.

    Raises:
        ConfigError: The parts of the manifest contradict each other; all are listed.
    """
    problems = manifest_problems(manifest)
    if manifest.languages and manifest.pairs != all_pairs(manifest.languages):
        problems.append("pairs are not all pairs of languages")
    if problems:
        raise ConfigError(_listed("the checkpoint's description is inconsistent", problems))
    return format_config(replace(manifest, pairs=()) if manifest.languages else manifest)


def parse_config(data: bytes, kind: type[T]) -> T:
    """The description in a file of any schema that is known.

    Args:
        data: The file.
        kind: `Manifest`, or a dataclass like it.

    Raises:
        ConversionError: Keys are missing or unknown, or values have wrong types.
        ConfigError: The file is not strict JSON, or is of a schema that is not known.
    """
    value = parse_json(data)
    if not isinstance(value, dict):
        raise ConversionError([Problem(place="", text=f"is {shown(value)}; it must be a mapping")])
    version = value.get("schema_version", MISSING)
    if version is MISSING:
        raise ConversionError([Problem(place="schema_version", text="is missing")])
    # `type` and not `isinstance`: true is no version.
    if type(version) is not int or not 1 <= version <= NEWEST_SCHEMA:
        # Another schema has other keys: listing those would only hide the reason.
        problem = f"schema_version is {shown(version)}; this Dragoman reads 1 to {NEWEST_SCHEMA}"
        raise ConfigError(problem)
    problems = key_problems(value)
    config = migrate(value)
    try:
        described = convert(kind, {key: config[key] for key in config if key != "schema_version"})
    except ConversionError as error:
        named = {(problem.place, problem.text) for problem in problems}
        more = [item for item in error.problems if (item.place, item.text) not in named]
        raise ConversionError([*problems, *more]) from error
    if problems:
        raise ConversionError(problems)
    return described


def format_config(description: object) -> bytes:
    """The bytes of config.json for a `Manifest`, or for a dataclass like it.

    The file is of the oldest schema that can say it, so that every Dragoman that knows what it
    needs to know can read it, and what says nothing new has the bytes that it always had.
    """
    stated = _stated(description, "")
    assert isinstance(stated, dict)
    config: JsonObject = {"schema_version": 1, **stated}
    if key_problems(config):
        config["schema_version"] = NEWEST_SCHEMA
    return format_json(config)


def _stated(value: object, pattern: str) -> object:
    """A value as JSON has it, without fields that may be left out and are at their defaults."""
    if is_dataclass(value):
        keys = SCHEMA_1_KEYS.get(pattern, frozenset())
        prefix = f"{pattern}." if pattern else ""
        return {
            item.name: _stated(getattr(value, item.name), prefix + item.name)
            for item in fields(value)
            if item.name in keys or not is_default(item, getattr(value, item.name))
        }
    if isinstance(value, tuple):
        return [_stated(item, f"{pattern}[]") for item in value]
    if isinstance(value, Mapping):
        return {key: _stated(item, f"{pattern}.*") for key, item in value.items()}
    return value


def _parse_manifest(path: Path, data: bytes) -> Manifest:
    try:
        manifest = parse_config(data, Manifest)
    except ConversionError as error:
        problems = [str(problem) for problem in error.problems]
        raise CheckpointError(path, _listed("cannot be used", problems)) from error
    except ConfigError as error:
        raise CheckpointError(path, str(error)) from error
    problems = language_problems(manifest)
    if manifest.languages and not problems:
        manifest = replace(manifest, pairs=all_pairs(manifest.languages))
    problems = problems or manifest_problems(manifest)
    if problems:
        raise CheckpointError(path, _listed("cannot be used", problems))
    return manifest


def _listed(headline: str, problems: list[str]) -> str:
    return "; ".join([f"{headline}: {problems[0]}", *problems[1:]])
