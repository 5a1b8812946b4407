"""config.json: read, checked and written.

Owns the file and its schema version. It does not own the description's types
(`model.checkpoint.manifest`), the checks between its parts (`model.checkpoint.consistency`) or
the other files (`model.checkpoint.verification`). Imports no torch.
"""

from pathlib import Path

from model.checkpoint.checksums import read_limited, read_listing, verify_files
from model.checkpoint.consistency import manifest_problems
from model.checkpoint.manifest import CONFIG_FILE, Manifest
from model.checkpoint.plain import format_json, parse_json, read_dataclass
from model.checkpoint.verification import verify_parts
from model.errors import CheckpointError, ConfigError
from model.system.paths import is_folder

SCHEMA_VERSION = 1
MAX_CONFIG_BYTES = 16 * 2**20


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
    if problems:
        raise ConfigError(_listed("the checkpoint's description is inconsistent", problems))
    return format_json(manifest)


def _parse_manifest(path: Path, data: bytes) -> Manifest:
    try:
        value = parse_json(data)
    except ConfigError as error:
        raise CheckpointError(path, str(error)) from error
    version = value.get("schema_version") if isinstance(value, dict) else None
    if isinstance(version, int) and version != SCHEMA_VERSION:
        # Another version has other keys: listing those would only hide the reason.
        problem = f"schema_version is {version}; this Dragoman reads {SCHEMA_VERSION}"
        raise CheckpointError(path, problem)
    problems: list[str] = []
    manifest = read_dataclass(Manifest, value, problems)
    if manifest is not None:
        problems += manifest_problems(manifest)
    if manifest is None or problems:
        raise CheckpointError(path, _listed("cannot be used", problems))
    return manifest


def _listed(headline: str, problems: list[str]) -> str:
    return "; ".join([f"{headline}: {problems[0]}", *problems[1:]])
