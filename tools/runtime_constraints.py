"""constraints-runtime.txt: the pins of what the image has, and of nothing else.

Owns which lines of `constraints.txt` those are: of everything that the server and the image's
extras need, and of what the package is built with. The image is keyed on this file, so that a
newer linter makes none of its layers anew. A test compares file and closure.
"""

import argparse
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.sbom import (
    PROJECT,
    SbomError,
    installed_requirements,
    read_dependencies,
    runtime_closure,
)

CONSTRAINTS = Path("constraints.txt")
_HEADER = (
    "# The versions of what the image has, cut out of constraints.txt; python -m\n"
    "# tools.runtime_constraints constraints-runtime.txt writes this.\n"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, help="file to write")
    arguments = parser.parse_args(argv)
    try:
        text = runtime_constraints(CONSTRAINTS.read_text(encoding="utf-8"), needed(PROJECT))
    except SbomError as error:
        print(f"no constraints: {error}", file=sys.stderr)
        return 1
    arguments.output.write_text(text, encoding="utf-8")
    return 0


def needed(project: Path) -> set[str]:
    """Normalised names of all that is installed to build the image and to run it.

    Raises:
        SbomError: Something that is needed is not installed here.
    """
    stated = tomllib.loads(project.read_text(encoding="utf-8"))
    extras = stated["project"]["optional-dependencies"]
    lines = [*stated["build-system"]["requires"], *extras["wheel"]]
    build = [Requirement(line).name for line in lines]
    closure = runtime_closure(read_dependencies(project), installed_requirements)
    return closure | {str(canonicalize_name(name)) for name in build}


def runtime_constraints(constraints: str, names: set[str]) -> str:
    """The lines of `constraints` that pin `names`, in their order.

    Raises:
        SbomError: One of the names has no pin.
    """
    lines = {
        str(canonicalize_name(line.partition("==")[0])): line
        for line in constraints.splitlines()
        if "==" in line and not line.startswith("#")
    }
    missing = sorted(names - lines.keys())
    if missing:
        raise SbomError(f"{CONSTRAINTS} has no pin of {', '.join(missing)}")
    return _HEADER + "".join(f"{line}\n" for name, line in lines.items() if name in names)


if __name__ == "__main__":
    sys.exit(main())
