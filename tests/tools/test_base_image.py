"""The base image is pinned, and its digest brought up to date or left as it is."""

import json
import sys
from pathlib import Path

import pytest

from support.running_server import ROOT
from tools.base_image import BaseImageError, main, pinned_base, present_digest

OLD, NEW = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
DOCKERFILE = f"# a base\nARG BASE_IMAGE=python:3.11-slim@{OLD}\nFROM ${{BASE_IMAGE}}\n"


def answer(digest: str, *architectures: str) -> str:
    manifests = [{"platform": {"architecture": name, "os": "linux"}} for name in architectures]
    return json.dumps({"digest": digest, "manifests": manifests})


def replay(folder: Path, printed: str, status: int = 0) -> list[str]:
    script = folder / "replay.py"
    script.write_text(f"import sys; print({printed!r}); sys.exit({status})")
    return [sys.executable, str(script)]


def test_the_dockerfile_pins_its_base_in_one_place() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    tag, digest = pinned_base(text)
    assert tag == "python:3.11-slim"
    assert text.count(digest) == 1
    sources = [line.split()[1] for line in text.splitlines() if line.startswith("FROM ")]
    stages = {line.split()[-1] for line in text.splitlines() if " AS " in line}
    assert {*sources} - stages == {"scratch", "${BASE_IMAGE}", "${BUILD_IMAGE}"}
    assert "ARG BUILD_IMAGE=${BASE_IMAGE}" in text


def test_a_tag_that_moved_is_pinned_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dockerfile = tmp_path / "Dockerfile"
    dockerfile.write_text(DOCKERFILE)
    command = replay(tmp_path, answer(NEW, "amd64", "arm64", "unknown"))
    assert main([str(dockerfile), *command]) == 0
    assert dockerfile.read_text() == DOCKERFILE.replace(OLD, NEW)
    assert f"was {OLD}, is {NEW}" in capsys.readouterr().out
    assert main([str(dockerfile), *command]) == 0
    assert f"is still {NEW}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("printed", "status", "reason"),
    [
        ("", 1, "no answer about python:3.11-slim"),
        ("no JSON", 0, "unknown shape"),
        ("{}", 0, "unknown shape"),
        ('{"digest": "sha256:1", "manifests": [null]}', 0, "unknown shape"),
        (answer("latest", "amd64", "arm64"), 0, "lacks a digest"),
        (answer(NEW, "amd64"), 0, "lacks arm64"),
    ],
)
def test_an_answer_that_is_none_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], printed: str, status: int, reason: str
) -> None:
    dockerfile = tmp_path / "Dockerfile"
    dockerfile.write_text(DOCKERFILE)
    assert main([str(dockerfile), *replay(tmp_path, printed, status)]) == 1
    assert reason in capsys.readouterr().err
    assert dockerfile.read_text() == DOCKERFILE


def test_a_base_without_a_digest_and_a_missing_tool_are_errors() -> None:
    for text in ("ARG BASE_IMAGE=python:3.11-slim\n", DOCKERFILE + DOCKERFILE):
        with pytest.raises(BaseImageError, match="not one"):
            pinned_base(text)
    with pytest.raises(BaseImageError, match="was not asked"):
        present_digest(["/nowhere/docker"], "python:3.11-slim")
