"""Checks of a tag before a release, and the notes of the release.

Owns where a version is written: the tag, `pyproject.toml`, the Dockerfile's VERSION and the newest
dated heading of the changelog. All four are one, or there is no release.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Sequence
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[1]

_TAG = re.compile(r"v(\d+\.\d+\.\d+)")
_HEADING = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (\S+)$", re.MULTILINE)
_ANY_HEADING = re.compile(r"^## ", re.MULTILINE)
_IMAGE_VERSION = re.compile(r"^ARG VERSION=(\S+)$", re.MULTILINE)


class ReleaseError(Exception):
    """A tag that cannot be released."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the notes of a tag's version; the exit status is 0 only if everything agrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tag", help="v and a version, as v0.2.0")
    arguments = parser.parse_args(argv)
    try:
        print(notes(arguments.tag, ROOT))
    except ReleaseError as error:
        print(f"no release: {error}", file=sys.stderr)
        return 1
    return 0


def notes(tag: str, root: Path) -> str:
    """What the changelog says of the version that a tag names.

    Raises:
        ReleaseError: The tag names none, or another than a file.
    """
    found = _TAG.fullmatch(tag)
    if found is None:
        raise ReleaseError(f"the tag is {tag!r}; it must be v and three numbers, as v0.2.0")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    wrong = [
        f"{name} has {version}"
        for name, version in versions(root, changelog).items()
        if version != found[1]
    ]
    if wrong:
        raise ReleaseError(f"the tag is {tag}, but {' and '.join(wrong)}")
    return section(changelog, found[1])


def versions(root: Path, changelog: str) -> dict[str, str]:
    """The version that each file names.

    Raises:
        ReleaseError: A file names none.
    """
    stated = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    image = _IMAGE_VERSION.search((root / "Dockerfile").read_text(encoding="utf-8"))
    newest = _HEADING.search(changelog)
    if image is None:
        raise ReleaseError("the Dockerfile has no line `ARG VERSION=…`")
    if newest is None:
        raise ReleaseError("CHANGELOG.md has no line `## [VERSION] - DATE`")
    try:
        date.fromisoformat(newest[2])
    except ValueError as error:
        raise ReleaseError(f"CHANGELOG.md dates {newest[1]} by {newest[2]!r}: {error}") from error
    return {
        "pyproject.toml": str(stated["project"]["version"]),
        "Dockerfile": image[1],
        "CHANGELOG.md": newest[1],
    }


def section(changelog: str, version: str) -> str:
    """What stands under a version's heading.

    Raises:
        ReleaseError: Nothing does.
    """
    for found in _HEADING.finditer(changelog):
        if found[1] == version:
            text = _ANY_HEADING.split(changelog[found.end() :], maxsplit=1)[0].strip()
            if text:
                return text
    raise ReleaseError(f"CHANGELOG.md says nothing of {version}")


if __name__ == "__main__":
    sys.exit(main())
