"""The release workflow is off until it is switched on, and builds what the repository can build."""

import ast
import re
import tomllib
from fnmatch import fnmatch
from importlib.util import find_spec
from typing import Any

import pytest
import yaml

from support.manifests import load
from support.running_server import ROOT
from tools.base_image import ARCHITECTURES

TEXT = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
WORKFLOW = yaml.load(TEXT, yaml.BaseLoader)
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]
STEPS = [(name, step) for name, job in JOBS.items() for step in job["steps"]]
SCRIPTS = [(name, step["run"]) for name, step in STEPS if "run" in step]
BUILD_WHEEL = (ROOT / ".ci/build-wheel").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def needs(name: str) -> set[str]:
    """All jobs that a job waits for."""
    direct = JOBS[name].get("needs", [])
    direct = {direct} if isinstance(direct, str) else {*direct}
    return direct.union(*map(needs, direct)) if direct else set()


def uses(action: str) -> list[dict[str, Any]]:
    return [step for _, step in STEPS if step.get("uses", "").startswith(f"{action}@")]


def test_only_a_tag_of_a_version_starts_it_and_only_where_it_is_switched_on() -> None:
    assert WORKFLOW["on"] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}
    assert JOBS["check"]["if"] == "vars.DRAGOMAN_RELEASES == 'enabled'"
    for name, job in JOBS.items():
        if name != "check":
            assert "check" in needs(name)
            assert "if" not in job, "a condition of its own would run it where check was skipped"
    assert needs("draft") == JOBS.keys() - {"draft"}


def test_every_action_is_named_by_its_commit_and_its_version() -> None:
    named = re.findall(r"uses: (\S+)@(\S+) # (v\d+\.\d+\.\d+)$", TEXT, re.MULTILINE)
    assert len(named) == sum("uses" in step for _, step in STEPS)
    assert all(re.fullmatch(r"[0-9a-f]{40}", commit) for _, commit, _ in named)
    assert len({*named}) == len({action for action, _, _ in named}), "one version an action"


def test_no_job_may_do_more_than_it_does() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    writing = {
        name: {right for right, level in job["permissions"].items() if level == "write"}
        for name, job in JOBS.items()
        if "permissions" in job
    }
    assert writing == {
        "images": {"packages", "id-token"},
        "tags": {"packages", "id-token"},
        "draft": {"contents", "id-token", "attestations"},
    }
    assert all("timeout-minutes" in job for job in JOBS.values())
    assert all(each["with"]["persist-credentials"] == "false" for each in uses("actions/checkout"))


def test_no_expression_is_pasted_into_a_script() -> None:
    assert [script for _, script in SCRIPTS if "${{" in script] == []


def test_the_images_are_built_by_the_dockerfile_for_what_its_base_has() -> None:
    [step] = uses("docker/build-push-action")
    lines = step["with"]["build-args"].splitlines()
    arguments = {line.partition("=")[0] for line in lines}
    assert arguments == {"VERSION", "REVISION", "TORCH_INDEX"}
    for argument in arguments:
        assert re.search(rf"^ARG {argument}=", DOCKERFILE, re.MULTILINE), argument
    matrix = JOBS["images"]["strategy"]["matrix"]["include"]
    built = {(each["variant"], each["architecture"]): each for each in matrix}
    assert {arch for variant, arch in built if variant == "cpu"} == {*ARCHITECTURES}
    assert ("cuda", "amd64") in built
    for (_, architecture), each in built.items():
        assert each["runner"].endswith("-arm") == (architecture == "arm64")
    indices = {variant: each["torch_index"] for (variant, _), each in built.items()}
    assert f"ARG TORCH_INDEX={indices['cpu']}\n" in DOCKERFILE
    [compose] = load(ROOT / "docker-compose.yml")
    gpu = compose["services"]["dragoman-gpu"]["build"]["args"]
    assert indices["cuda"] == gpu["TORCH_INDEX"]
    assert step["with"]["provenance"] == "mode=max"


def test_every_variant_gets_a_tag_and_every_image_a_signature_and_a_bill() -> None:
    matrix = JOBS["images"]["strategy"]["matrix"]["include"]
    [tagging] = [script for name, script in SCRIPTS if name == "tags"]
    [listed] = re.findall(r"for variant in (.*?);", tagging)
    assert {*listed.split()} == {each["variant"] for each in matrix}
    of_images = "\n".join(script for name, script in SCRIPTS if name == "images")
    assert 'cosign sign --yes "$IMAGE@$DIGEST"' in of_images
    assert "cosign attest --yes --type cyclonedx" in of_images
    assert 'cosign sign --yes "$IMAGE@$digest"' in tagging
    of_draft = "\n".join(script for name, script in SCRIPTS if name == "draft")
    assert "cosign sign-blob --yes --bundle" in of_draft
    assert "gh release create" in of_draft
    assert "--draft" in of_draft


def test_what_a_job_takes_another_one_has_left() -> None:
    left = [step["with"]["name"] for step in uses("actions/upload-artifact")]
    for step in uses("actions/download-artifact"):
        wanted = step["with"].get("name", step["with"].get("pattern"))
        assert any(fnmatch(name, wanted) for name in left), wanted
    for step in uses("actions/upload-artifact"):
        assert step["with"]["if-no-files-found"] == "error"


def test_the_wheels_are_of_versions_of_python_that_the_package_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    least = int(project["requires-python"].removeprefix(">=3."))
    built = JOBS["wheels"]["strategy"]["matrix"]["python"]
    assert min(int(version.removeprefix("3.")) for version in built) == least
    assert len({*built}) == len(built)
    [python_alone] = [step for _, step in STEPS if "pip wheel" in step.get("run", "")]
    assert python_alone["env"] == {"DRAGOMAN_WITHOUT_KERNELS": "1"}
    assert f"matrix.python == '3.{least}'" in python_alone["if"]
    assert "DRAGOMAN_WITHOUT_KERNELS" in (ROOT / "setup.py").read_text(encoding="utf-8")


def test_the_wheels_with_kernels_are_those_of_make_wheel_on_every_architecture() -> None:
    setup = ast.parse((ROOT / "setup.py").read_text(encoding="utf-8"))
    [sets] = [
        node.value
        for node in setup.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "INSTRUCTION_SETS"
    ]
    assert isinstance(sets, ast.Dict)
    machines = JOBS["wheels"]["strategy"]["matrix"]["machine"]
    assert {one["arch"] for one in machines} == {
        ast.literal_eval(arch) for arch in sets.keys if arch is not None
    }
    assert next(script for name, script in SCRIPTS if name == "wheels") == "make wheel"
    [checked] = [script for name, script in SCRIPTS if name == "wheels" and "manylinux" in script]
    [least] = re.findall(r"^glibc=(\S+)$", BUILD_WHEEL, re.MULTILINE)
    assert f"manylinux_{least.replace('.', '_')}_" in checked


def test_the_page_on_releases_says_what_switches_it_on_and_who_signs() -> None:
    page = (ROOT / "docs/releases.md").read_text(encoding="utf-8")
    assert "`DRAGOMAN_RELEASES` = `enabled`" in page
    assert "/.github/workflows/release.yml@refs/tags/v" in page
    matrix = JOBS["images"]["strategy"]["matrix"]["include"]
    for variant in {each["variant"] for each in matrix}:
        assert f"`VERSION-{variant}`" in page


@pytest.mark.parametrize("script", [script for _, script in SCRIPTS])
def test_what_it_runs_of_ours_is_there(script: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"\bmake ([a-z-]+)", script):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for name in re.findall(r"python3? -m (tools\.\w+)", script):
        assert find_spec(name) is not None, name
    for name in re.findall(r"--constraint (\S+)", script):
        assert (ROOT / name).is_file(), name
