import subprocess
from pathlib import Path

import pytest

from service.child_command import child_command
from support.running_server import ROOT

CHILDREN = sorted(
    path.relative_to(ROOT)
    for folder in ("model", "service")
    for path in (ROOT / folder).rglob("*.py")
    if "sys.executable" in path.read_text()
)


def test_a_child_finds_the_server_and_nothing_of_the_folder_that_it_is_started_in(
    tmp_path: Path,
) -> None:
    (tmp_path / "token.py").write_text("raise SystemExit('mine')\n")
    (tmp_path / "service").mkdir()
    (tmp_path / "service" / "__init__.py").write_text("raise SystemExit('mine')\n")
    done = subprocess.run(
        child_command("service.engine.worker", "--help"),
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "the engine's end of the socket" in done.stdout


@pytest.mark.parametrize("path", CHILDREN, ids=str)
def test_no_child_is_started_with_the_current_folder_in_its_search_for_modules(path: Path) -> None:
    text = (ROOT / path).read_text()
    assert text.count("[sys.executable,") == text.count('[sys.executable, "-P",')
    assert text.count("sys.executable") == text.count("[sys.executable,")
