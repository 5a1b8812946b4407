"""File systems that are small, and files that may not be large: real ones, without privileges."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.short_of_memory import ROOT

_MOUNTED = 'mount -t tmpfs -o size="$2" small "$1" && shift 2 && exec "$@"'
_WAYS = (
    ["unshare", "--mount", "--propagation=private"],
    ["unshare", "--user", "--map-root-user", "--mount"],
)


def on_small_disk(folder: Path, num_bytes: int, code: str, *words: str) -> str:
    """What code prints to which a folder is a file system of so many bytes, gone afterwards.

    Skips the test where nobody may mount one, not even in a namespace of their own.
    """
    for way in _WAYS:
        within = [*way, "sh", "-c", _MOUNTED, "sh", str(folder), str(num_bytes)]
        if _runs([*within, "true"]):
            break
    else:
        pytest.skip("no file system may be mounted here, not even in a namespace of its own")
    ended = subprocess.run(
        [*within, sys.executable, "-c", code, *words],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _runs(command: list[str]) -> bool:
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@contextmanager
def small_files(num_bytes: int) -> Iterator[None]:
    """Block in which no file of this process may have more bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
