"""The parts of the server that no request shows; tests/e2e runs the whole."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
from service.server import allow_files
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
allow_files(300)
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "limits", "is_told"),
    [
        (100, 400, "300 400", False),
        (100, 200, "200 200", True),
        (350, 400, "350 400", False),
    ],
)
def test_as_many_files_may_be_open_as_connections_need(
    soft: int, hard: int, limits: str, is_told: bool
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(soft), str(hard)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == limits
    assert ("few files may be open" in done.stderr) == is_told
