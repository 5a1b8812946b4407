"""The bill of materials of an image: what is really in it, not what was asked for.

Owns how the image's own inventory becomes a CycloneDX 1.6 document: Debian's packages, Python and
its packages, and the bundled weights as machine-learning models with hashes and licences. That
every pin was kept and that the weights are those of this repository is checked on the way.
"""

import argparse
import json
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from model.checkpoint.files.checksums import CHECKSUMS_FILE
from model.errors import CheckpointError
from tools.audit import normalised, read_pins
from tools.weights import (
    CHECKPOINTS,
    WeightsError,
    bundled,
    component,
    image_licences,
    listed_digests,
)

TIMEOUT_SECONDS = 300
INVENTORY = Path(__file__).parent / "image_inventory.py"
CONSTRAINTS = Path("constraints-runtime.txt")
OWN_NAME = "dragoman"


class ImageSbomError(Exception):
    """The bill could not be made, or the image is not what it should be."""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the bill of an image."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, help="file to write")
    parser.add_argument("command", nargs="+", help="what runs the image's Python on its input")
    arguments = parser.parse_args(argv)
    try:
        found = look(arguments.command)
        check_pins(found, read_pins(CONSTRAINTS.read_text(encoding="utf-8")))
        check_weights(found, CHECKPOINTS)
        document = bill(found, image_licences(bundled(CHECKPOINTS)))
    except (ImageSbomError, WeightsError, CheckpointError) as error:
        print(f"no bill of materials: {error}", file=sys.stderr)
        return 1
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    kinds = [each["bom-ref"].partition(":")[0] for each in document["components"]]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    print(f"{arguments.output}: {len(kinds)} components ({counts})")
    return 0


def look(command: Sequence[str]) -> dict[str, Any]:
    """The inventory that `command`, a Python that reads its standard input, prints.

    Raises:
        ImageSbomError: It failed or printed something else.
    """
    try:
        done = subprocess.run(  # noqa: S603  # what the Makefile names
            command,
            input=INVENTORY.read_text(encoding="utf-8"),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ImageSbomError(f"the image was not looked at: {error}") from error
    if done.returncode != 0:
        raise ImageSbomError(f"the inventory left with {done.returncode}: {done.stderr[-1000:]}")
    try:
        found = json.loads(done.stdout)
    except ValueError as error:
        raise ImageSbomError(f"the inventory is no JSON: {error}") from error
    missing = {"python", "system", "packages", "debian", "weights"} - found.keys()
    if missing:
        raise ImageSbomError(f"the inventory lacks {', '.join(sorted(missing))}")
    return dict(found)


def check_pins(found: Mapping[str, Any], pins: Mapping[str, str]) -> None:
    """Every package has the version of its pin, but those of CUDA, which PyTorch itself pins.

    Raises:
        ImageSbomError: One has another version, or no pin.
    """
    wrong = []
    for package in found["packages"]:
        name, version = normalised(package["name"]), package["version"]
        of_cuda = name.startswith(("nvidia-", "cuda-", "triton"))
        if name == OWN_NAME or (of_cuda and name not in pins):
            continue
        if pins.get(name) != version.partition("+")[0]:
            wrong.append(f"{name} {version}, but {pins.get(name, 'nothing')} is pinned")
    if wrong:
        raise ImageSbomError(f"the image has {'; '.join(wrong)}")


def check_weights(found: Mapping[str, Any], folder: Path) -> None:
    """The image's weights are those of `folder`, to the byte.

    Raises:
        ImageSbomError: A checkpoint or a file is missing, or is another.
    """
    expected = {
        path.parent.name: listed_digests(path.read_text(encoding="utf-8"))
        for path in folder.glob(f"*/{CHECKSUMS_FILE}")
    }
    held = {
        each["description"]["name"]: {
            name: digest for name, digest in each["digests"].items() if name != CHECKSUMS_FILE
        }
        for each in found["weights"]
    }
    differing = sorted(name for name in {*expected, *held} if expected.get(name) != held.get(name))
    if differing:
        raise ImageSbomError(f"other weights than in {folder}: {', '.join(differing)}")


def bill(found: Mapping[str, Any], licences: str) -> dict[str, Any]:
    """The CycloneDX document; the same inventory gives the same bytes."""
    system = found["system"]
    distribution = f"{system['ID']}-{system.get('VERSION_ID', 'rolling')}"
    components = [
        *(_debian(each, system["ID"], distribution) for each in found["debian"]),
        _python(found["python"]),
        *(_package(each) for each in found["packages"]),
        *(component(each["description"], each["digests"]) for each in found["weights"]),
    ]
    [version] = [each["version"] for each in found["packages"] if each["name"] == OWN_NAME]
    identity = json.dumps(components, sort_keys=True)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, identity)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "bom-ref": f"image:{OWN_NAME}@{version}",
                "name": OWN_NAME,
                "version": version,
                "licenses": [{"expression": licences}],
            }
        },
        "components": components,
    }


def _debian(package: Mapping[str, str], system: str, distribution: str) -> dict[str, Any]:
    name, version = package["name"], package["version"]
    architecture = package["architecture"]
    where = f"?arch={architecture}&distro={distribution}"
    return {
        "type": "library",
        "bom-ref": f"deb:{name}:{architecture}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:deb/{system}/{quote(name)}@{quote(version, safe='')}{where}",
    }


def _python(version: str) -> dict[str, Any]:
    return {
        "type": "platform",
        "bom-ref": f"python:python@{version}",
        "name": "python",
        "version": version,
        "licenses": [{"expression": "PSF-2.0"}],
        "purl": f"pkg:generic/python@{version}",
    }


def _package(package: Mapping[str, Any]) -> dict[str, Any]:
    name, version = normalised(package["name"]), package["version"]
    if package["expression"]:
        licences = [{"expression": package["expression"]}]
    else:
        licences = [{"license": {"name": each}} for each in package["licences"]]
    return {
        "type": "application" if name == OWN_NAME else "library",
        "bom-ref": f"pypi:{name}@{version}",
        "name": name,
        "version": version,
        "scope": "required",
        **({"licenses": licences} if licences else {}),
        "purl": f"pkg:pypi/{name}@{quote(version, safe='')}",
    }


if __name__ == "__main__":
    sys.exit(main())
