"""The audit of dependencies: every pinned package is looked up, or the audit fails.

Owns what counts as audited. `pip-audit` does the looking up; it skips what it cannot find, and
without a network it skips everything and reports that all is well. Here a package that was
skipped, left out, or installed without a pin is as bad as a vulnerable one.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path

TIMEOUT_SECONDS = 900

# What is not from the package index: ourselves, and the installer that every environment has.
_NOT_AUDITED = frozenset({"dragoman", "pip"})
_PIN = re.compile(r"([A-Za-z0-9._-]+)==([^\s;#]+)")


class AuditError(Exception):
    """The audit could not be made."""


def main(argv: Sequence[str] | None = None) -> int:
    """Audit; the exit status is 0 only if every package was found and none is vulnerable."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("constraints", type=Path, help="file of pins, one a line")
    parser.add_argument("command", nargs="+", help="pip-audit and further flags of its own")
    arguments = parser.parse_args(argv)
    try:
        pins = read_pins(arguments.constraints.read_text(encoding="utf-8"))
        complaints = unpinned(pins, installed())
        complaints += judge(run(arguments.command, arguments.constraints), pins)
    except AuditError as error:
        complaints = [str(error)]
    if complaints:
        print("the audit FAILED:", *complaints, sep="\n", file=sys.stderr)
        return 1
    print(f"{len(pins)} packages audited, no known vulnerability")
    return 0


def read_pins(text: str) -> dict[str, str]:
    """Version by normalised name of every line `name==version`.

    Raises:
        AuditError: A line is something else, or there is none.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    pins = {}
    for line in lines:
        pin = _PIN.fullmatch(line.strip())
        if pin is None:
            raise AuditError(f"this line is no pin: {line}")
        pins[normalised(pin[1])] = pin[2]
    if not pins:
        raise AuditError("there is no pin")
    return pins


def installed() -> dict[str, str]:
    """Version by normalised name of everything in this environment."""
    return {normalised(item.name): item.version for item in distributions()}


def unpinned(pins: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """A complaint for every installed package that the pins do not speak of.

    A local version such as 2.13.0+cpu is the public one of another index.
    """
    complaints = []
    for name, version in sorted(found.items()):
        public = version.partition("+")[0]
        if name not in _NOT_AUDITED and pins.get(name) != public:
            pinned = pins.get(name, "nothing")
            complaints.append(f"{name} {version} is installed, but {pinned} is pinned")
    return complaints


def run(command: Sequence[str], constraints: Path) -> str:
    """What `pip-audit` prints as JSON.

    Raises:
        AuditError: It failed, other than by finding vulnerabilities.
    """
    flags = ["--requirement", str(constraints), "--no-deps", "--disable-pip"]
    flags += ["--format", "json", "--progress-spinner", "off"]
    try:
        done = subprocess.run(  # noqa: S603  # what the Makefile names
            [*command, *flags], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AuditError(f"pip-audit did not run: {error}") from error
    if done.returncode not in (0, 1) or not done.stdout.strip():
        raise AuditError(f"pip-audit left with {done.returncode}: {done.stderr.strip()[-1000:]}")
    return done.stdout


def judge(output: str, pins: Mapping[str, str]) -> list[str]:
    """A complaint for every package that was not looked up or is vulnerable.

    Args:
        output: Of `pip-audit --format json`.
        pins: What had to be audited.

    Raises:
        AuditError: The output has another shape.
    """
    try:
        dependencies = json.loads(output)["dependencies"]
        mentioned, complaints = _read(dependencies)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise AuditError(f"pip-audit's output has an unknown shape: {error!r}") from error
    for name, version in sorted(pins.items()):
        if name not in mentioned:
            complaints.append(f"{name} {version} was left out")
        elif mentioned[name] not in (None, version):
            complaints.append(f"{name} was audited as {mentioned[name]}, but {version} is pinned")
    return complaints


def _read(dependencies: Iterable[dict[str, object]]) -> tuple[dict[str, str | None], list[str]]:
    """What was mentioned, with its version if it was looked up, and the complaints."""
    mentioned: dict[str, str | None] = {}
    complaints = []
    for item in dependencies:
        name = normalised(str(item["name"]))
        if "skip_reason" in item:
            mentioned[name] = None
            complaints.append(f"{name} was skipped: {item['skip_reason']}")
            continue
        mentioned[name] = str(item["version"])
        vulnerabilities = item["vulns"]
        if not isinstance(vulnerabilities, list):
            raise TypeError("vulns is no list")
        for found in vulnerabilities:
            fixed = ", ".join(found["fix_versions"]) or "no version yet"
            complaints.append(f"{name} {item['version']}: {found['id']}, fixed in {fixed}")
    return mentioned, complaints


def normalised(name: str) -> str:
    """A package's name as the index compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main())
