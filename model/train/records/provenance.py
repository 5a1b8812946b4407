"""Provenance of a run: commit, machine, versions.

Owns which facts are recorded; none names a person, a computer network or a folder of the machine.
"""

import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from model.train.records.journal import Value

REVISION_VARIABLE = "DRAGOMAN_REVISION"
"""Names the commit where there is no git: an image is built with it."""

_REVISION = re.compile(r"([0-9a-f]{7,64})(-dirty)?")
_PACKAGES = ("dragoman", "torch", "numpy", "sentencepiece", "sacrebleu")
_GIT_SECONDS = 10
_CPU_FILE = Path("/proc/cpuinfo")


def describe_start(device: torch.device, *, command: str) -> dict[str, Value]:
    """Fields of a "start" event.

    Args:
        device: Where the network is trained.
        command: What was typed.
    """
    fields: dict[str, Value] = {
        "command": command,
        "commit": source_commit(Path(__file__).parent, revision=os.environ.get(REVISION_VARIABLE)),
        "processor": _processor(),
        "num_cores": len(os.sched_getaffinity(0)),
        "num_threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    return fields | package_versions()


def package_versions() -> dict[str, str | None]:
    """Versions of this program and of what a run computes with; None where one is unknown."""
    return {name: _version(name) for name in _PACKAGES}


def source_commit(folder: Path, *, revision: str | None = None) -> str | None:
    """The git commit that the sources in a folder are of, "-dirty" if tracked files differ.

    None without git, and where git does not keep these very files: a package that is installed
    inside another project's repository is not of that repository's commit.

    Args:
        folder: Of the sources.
        revision: Commit that the build names, used instead of None; anything but a commit's name,
            such as "unknown", is ignored.
    """
    git = shutil.which("git")
    if git is not None and _run_git(git, folder, "ls-files", "*.py"):
        return _run_git(
            git, folder, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"
        )
    named = _REVISION.fullmatch(revision or "")
    return None if named is None else f"{named[1][:12]}{named[2] or ''}"


def _run_git(git: str, folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603  # git itself, constant arguments
            [git, *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_GIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def _processor() -> str:
    if _CPU_FILE.is_file():
        for line in _CPU_FILE.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
