"""Inventory of an image, printed as JSON by the image's own Python.

Owns the looking: Python's packages, Debian's packages, the weights with the hashes of their files.
It is handed to that Python on its standard input, so it imports nothing but the standard library;
`tools.image_sbom` makes the bill of it.
"""

import hashlib
import json
import platform
import shutil
import subprocess
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

CHECKPOINTS = Path("checkpoints")
_DPKG_FORMAT = "${Package}\\t${Version}\\t${Architecture}\\t${db:Status-Abbrev}\\n"
_LICENCE_CLASSIFIER = "License :: "


def inventory(checkpoints: Path) -> dict[str, Any]:
    """Everything of this machine that a bill of materials names."""
    return {
        "python": platform.python_version(),
        "system": platform.freedesktop_os_release(),
        "packages": sorted(map(_package, distributions()), key=lambda found: found["name"].lower()),
        "debian": _debian(),
        "weights": [_weights(path) for path in sorted(checkpoints.glob("*/config.json"))],
    }


def _package(found: Distribution) -> dict[str, Any]:
    metadata = found.metadata
    classifiers = [
        line.removeprefix(_LICENCE_CLASSIFIER).rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier") or []
        if line.startswith(_LICENCE_CLASSIFIER)
    ]
    return {
        "name": metadata["Name"],
        "version": found.version,
        "expression": (metadata.get_all("License-Expression") or [None])[0],
        "licences": classifiers,
    }


def _debian() -> list[dict[str, str]]:
    """Installed packages; none where there is no dpkg."""
    command = shutil.which("dpkg-query")
    if command is None:
        return []
    listed = subprocess.run(  # noqa: S603  # the path that was found
        [command, "--show", f"--showformat={_DPKG_FORMAT}"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = (line.split("\t") for line in listed.stdout.splitlines())
    return [
        {"name": name, "version": version, "architecture": architecture}
        for name, version, architecture, status in rows
        if status.strip() == "ii"
    ]


def _weights(config: Path) -> dict[str, Any]:
    folder = config.parent
    digests = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            digests[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return {"description": json.loads(config.read_text(encoding="utf-8")), "digests": digests}


if __name__ == "__main__":
    json.dump(inventory(CHECKPOINTS), sys.stdout)
