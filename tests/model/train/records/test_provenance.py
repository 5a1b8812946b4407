import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from model.train.records.provenance import REVISION_VARIABLE, describe_start, source_commit

GIT = shutil.which("git")


def git(folder: Path, *arguments: str) -> str:
    assert GIT is not None
    identity = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    command = [GIT, *identity, *arguments]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_start_names_commit_machine_and_versions_and_no_folder() -> None:
    found = describe_start(torch.device("cpu"), command="dragoman train x.yaml")
    assert found["torch"] == torch.__version__
    assert found["device"] == "cpu"
    assert found["num_threads"] == torch.get_num_threads()
    home = str(Path(__file__).parents[4])
    assert not any(home in str(value) for value in found.values())


@pytest.mark.parametrize(
    ("revision", "commit"),
    [
        ("0123456789abcdef0123456789abcdef01234567", "0123456789ab"),
        ("0123456-dirty", "0123456-dirty"),
        ("unknown", None),
        ("", None),
        (None, None),
    ],
)
def test_a_build_names_the_commit_where_git_does_not(
    revision: str | None, commit: str | None, tmp_path: Path
) -> None:
    assert source_commit(tmp_path, revision=revision) == commit


def test_a_start_reads_what_the_build_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv(REVISION_VARIABLE, "89abcdef" * 5)
    assert describe_start(torch.device("cpu"), command="")["commit"] == "89abcdef89ab"


@pytest.mark.skipif(GIT is None, reason="git is not installed")
def test_a_commit_is_of_the_very_files(tmp_path: Path) -> None:
    assert source_commit(tmp_path) is None
    git(tmp_path, "init", "--quiet")
    (tmp_path / "one.py").write_text("1\n", encoding="utf-8")
    assert source_commit(tmp_path) is None  # not committed
    git(tmp_path, "add", "one.py")
    git(tmp_path, "commit", "--quiet", "--message", "one")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert source_commit(tmp_path, revision="fedcba9876543210") == commit[:12]  # git knows better
    installed = tmp_path / "environment" / "package"
    installed.mkdir(parents=True)
    (installed / "two.py").write_text("2\n", encoding="utf-8")
    assert source_commit(installed) is None  # inside a repository, and not of it
    (tmp_path / "one.py").write_text("other\n", encoding="utf-8")
    assert source_commit(tmp_path) == f"{commit[:12]}-dirty"
