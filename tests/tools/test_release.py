"""A tag is released only where package, image and changelog name its version."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest

from support.running_server import ROOT
from tools.release import ReleaseError, main, notes, section, versions

CHANGELOG = """# Changelog

## [Unreleased]

## [1.2.3] - 2026-11-23

- New.

## [1.2.2] - 2026-01-01

- Old.
"""
SOURCES = ("LICENSE", "NOTICE", "README.md", "model", "pyproject.toml", "service", "setup.py")


def tree(
    folder: Path, *, package: str = "1.2.3", image: str = "1.2.3", log: str = CHANGELOG
) -> Path:
    (folder / "pyproject.toml").write_text(f'[project]\nversion = "{package}"\n')
    (folder / "Dockerfile").write_text(f"ARG VERSION={image}\n")
    (folder / "CHANGELOG.md").write_text(log)
    return folder


def test_the_repository_agrees_with_itself() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = versions(ROOT, changelog)
    assert len({*found.values()}) == 1, found
    [version] = {*found.values()}
    assert changelog.index("## [Unreleased]") < changelog.index(f"## [{version}] - ")
    assert section(changelog, version).startswith("### ")


def test_the_notes_are_those_of_the_tags_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert notes("v1.2.3", tree(tmp_path)) == "- New."
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert main([f"v{version}"]) == 0
    assert "###" in capsys.readouterr().out
    assert main(["v0.0.0"]) == 1
    assert f"no release: the tag is v0.0.0, but pyproject.toml has {version}" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("tag", ["1.2.3", "v1.2", "v1.2.3-rc1", "v1.2.3\n", "main"])
def test_a_tag_that_is_no_version_is_an_error(tmp_path: Path, tag: str) -> None:
    with pytest.raises(ReleaseError, match="it must be v and three numbers"):
        notes(tag, tree(tmp_path))


@pytest.mark.parametrize(
    ("package", "image", "log", "reason"),
    [
        ("1.2.4", "1.2.3", CHANGELOG, r"pyproject\.toml has 1\.2\.4$"),
        ("1.2.3", "1.2.2", CHANGELOG, r"Dockerfile has 1\.2\.2$"),
        ("1.2.2", "1.2.2", CHANGELOG, r"toml has 1\.2\.2 and Dockerfile has 1\.2\.2$"),
        ("1.2.3", "1.2.3", CHANGELOG.replace("[1.2.3]", "[1.3.0]"), r"CHANGELOG\.md has 1\.3\.0$"),
        ("1.2.3", "1.2.3", CHANGELOG.replace("2026-11-23", "2026-11-31"), "dates 1.2.3 by"),
        ("1.2.3", "1.2.3", CHANGELOG.replace("2026-11-23", "soon"), "dates 1.2.3 by 'soon'"),
        ("1.2.3", "1.2.3", "# Changelog\n", "has no line `## "),
        ("1.2.3", "1.2.3", CHANGELOG.replace("- New.\n", ""), "says nothing of 1.2.3"),
    ],
)
def test_whatever_names_another_version_is_told(
    tmp_path: Path, package: str, image: str, log: str, reason: str
) -> None:
    with pytest.raises(ReleaseError, match=reason):
        notes("v1.2.3", tree(tmp_path, package=package, image=image, log=log))


def test_the_wheel_without_kernels_is_for_every_machine_and_names_its_licence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SOURCES:
        if (ROOT / name).is_dir():
            no_builds = shutil.ignore_patterns("__pycache__", "*.so")
            shutil.copytree(ROOT / name, tmp_path / name, ignore=no_builds)
        else:
            shutil.copy2(ROOT / name, tmp_path / name)
    monkeypatch.setenv("DRAGOMAN_WITHOUT_KERNELS", "1")
    backend = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"
    done = subprocess.run(
        [sys.executable, "-c", backend], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = done.stdout.splitlines()[-1]
    assert name == f"dragoman-{project['version']}-py3-none-any.whl"
    with zipfile.ZipFile(tmp_path / name) as wheel:
        about = f"dragoman-{project['version']}.dist-info"
        metadata = BytesParser().parsebytes(wheel.read(f"{about}/METADATA"))
        files = wheel.namelist()
    assert metadata["Version"] == project["version"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE", "NOTICE"]
    assert {f"{about}/licenses/LICENSE", f"{about}/licenses/NOTICE"} <= {*files}
    assert "model/native/kernels.py" in files
    assert not [file for file in files if file.endswith((".so", ".safetensors", ".cpp"))]
