"""The bill of materials: every package of the environment, and whether the image has it.

Owns the one thing that the generator does not know: which components are there only to develop
or to measure. What the server needs, and the extras that the image has by default, are marked
"required", with the versions that `constraints.txt` gives both. The others are marked "excluded",
as CycloneDX calls what is not there at run time. The listing itself is `cyclonedx-py`'s, and the
bundled weights are added to it. The bill of an image is `tools.image_sbom`'s.
"""

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from model.errors import CheckpointError
from tools.weights import CHECKPOINTS, WeightsError, environment_components

TIMEOUT_SECONDS = 300
PROJECT = Path("pyproject.toml")
IMAGE_EXTRAS = ("otel", "redis")
"""Extras that the image has unless it is built otherwise (EXTRAS in the Dockerfile)."""


class SbomError(Exception):
    """The bill could not be made, or is not complete."""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the bill of this environment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, help="file to write")
    parser.add_argument("command", nargs="+", help="cyclonedx-py and further flags of its own")
    arguments = parser.parse_args(argv)
    try:
        document = generate(arguments.command)
        mark_scopes(document, runtime_closure(read_dependencies(PROJECT), installed_requirements))
        document["components"] += environment_components(CHECKPOINTS)
    except (SbomError, WeightsError, CheckpointError) as error:
        print(f"no bill of materials: {error}", file=sys.stderr)
        return 1
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    scopes = [component["scope"] for component in document["components"]]
    print(f"{arguments.output}: {len(scopes)} components, {scopes.count('required')} at run time")
    return 0


def generate(command: Sequence[str]) -> dict[str, Any]:
    """What `cyclonedx-py` says of the environment of this interpreter.

    Raises:
        SbomError: It failed.
    """
    flags = ["environment", "--pyproject", str(PROJECT), "--output-format", "JSON"]
    try:
        done = subprocess.run(  # noqa: S603  # what the Makefile names
            [*command, *flags, sys.executable],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=True,
        )
        document = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise SbomError(f"cyclonedx-py failed: {error}") from error
    if document.get("bomFormat") != "CycloneDX":
        raise SbomError("cyclonedx-py wrote something else")
    return dict(document)


def read_dependencies(project: Path, extras: Sequence[str] = IMAGE_EXTRAS) -> list[str]:
    """The requirements of the project itself and of some of its extras."""
    stated = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    lists = [stated["dependencies"], *(stated["optional-dependencies"][name] for name in extras)]
    return [str(requirement) for found in lists for requirement in found]


def runtime_closure(
    dependencies: Iterable[str], requirements: Callable[[str], Sequence[str] | None]
) -> set[str]:
    """Normalised names of everything that is needed where `dependencies` are.

    Args:
        dependencies: Requirements, as a project states them.
        requirements: Of a package, as its metadata states them; None if it is not installed.

    Raises:
        SbomError: Something that is needed is not installed.
    """
    found: set[tuple[str, str]] = set()
    waiting = _needed(dependencies, "")
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        stated = requirements(name)
        if stated is None:
            raise SbomError(f"{name} is needed and not installed")
        waiting += _needed(stated, extra)
    return {name for name, _ in found}


def _needed(stated: Iterable[str], extra: str) -> list[tuple[str, str]]:
    """Names, each with the extras that are wanted of it, of what holds on this machine."""
    return [
        (str(canonicalize_name(requirement.name)), wanted)
        for requirement in map(Requirement, stated)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        for wanted in ("", *requirement.extras)
    ]


def mark_scopes(document: dict[str, Any], required: set[str]) -> None:
    """Mark every component; all of `required` must be there.

    Raises:
        SbomError: One is missing.
    """
    listed = set()
    for component in document["components"]:
        name = str(canonicalize_name(component["name"]))
        listed.add(name)
        component["scope"] = "required" if name in required else "excluded"
    missing = required - listed
    if missing:
        raise SbomError(f"it lacks {', '.join(sorted(missing))}")


def installed_requirements(name: str) -> list[str] | None:
    """What an installed package requires; None if it is not installed."""
    try:
        return requires(name) or []
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())
