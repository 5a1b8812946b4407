"""The digest that the Dockerfile's base image is pinned by, brought up to date.

Owns the one line `ARG BASE_IMAGE=name:tag@sha256:…`. What a registry has under that tag today is
`docker buildx imagetools inspect`'s answer; the digest is of the index, so it holds for every
architecture that the tag has.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

TIMEOUT_SECONDS = 120
ARCHITECTURES = ("amd64", "arm64")
"""What the image is built for, so what the base must have."""

_BASE = re.compile(r"^ARG BASE_IMAGE=([\w./:-]+:[\w.-]+)@(sha256:[0-9a-f]{64})$", re.MULTILINE)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class BaseImageError(Exception):
    """The digest could not be brought up to date."""


def main(argv: Sequence[str] | None = None) -> int:
    """Ask for the tag's present digest and write it into the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dockerfile", type=Path)
    parser.add_argument("command", nargs="+", help="docker buildx imagetools inspect")
    arguments = parser.parse_args(argv)
    try:
        text = arguments.dockerfile.read_text(encoding="utf-8")
        tag, pinned = pinned_base(text)
        digest = present_digest(arguments.command, tag)
    except (BaseImageError, OSError) as error:
        print(f"the base image stays as it is: {error}", file=sys.stderr)
        return 1
    if digest == pinned:
        print(f"{tag} is still {digest}")
        return 0
    arguments.dockerfile.write_text(text.replace(pinned, digest), encoding="utf-8")
    print(f"{tag} was {pinned}, is {digest}")
    return 0


def pinned_base(dockerfile: str) -> tuple[str, str]:
    """Tag and digest of the base image.

    Raises:
        BaseImageError: There is no such line, or another one.
    """
    found = _BASE.findall(dockerfile)
    if len(found) != 1:
        raise BaseImageError(f"{len(found)} lines are `ARG BASE_IMAGE=name:tag@sha256:…`, not one")
    tag, digest = found[0]
    return tag, digest


def present_digest(command: Sequence[str], tag: str) -> str:
    """The digest of the index that a registry has under a tag.

    Args:
        command: That prints an image's index as JSON, with `--format '{{json .Manifest}}'`.
        tag: Of the image.

    Raises:
        BaseImageError: It failed, or the image is not for every architecture.
    """
    try:
        done = subprocess.run(  # noqa: S603  # what the Makefile names
            [*command, tag, "--format", "{{json .Manifest}}"],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BaseImageError(f"the registry was not asked: {error}") from error
    if done.returncode != 0:
        raise BaseImageError(f"no answer about {tag}: {done.stderr.strip()[-1000:]}")
    try:
        index = json.loads(done.stdout)
        digest = str(index["digest"])
        found = {str(each["platform"]["architecture"]) for each in index["manifests"]}
    except (ValueError, KeyError, TypeError) as error:
        raise BaseImageError(f"the answer about {tag} has an unknown shape: {error!r}") from error
    missing = sorted({*ARCHITECTURES} - found)
    if missing or _DIGEST.fullmatch(digest) is None:
        raise BaseImageError(f"{tag} is {digest}, which lacks {', '.join(missing) or 'a digest'}")
    return digest


if __name__ == "__main__":
    sys.exit(main())
