"""What is in the image, and what it can do without any right."""

import json
import tomllib
from pathlib import Path

import httpx
import pytest

from support.containers import CONFINED, Container, docker, run_once, serving, wait_for
from support.running_server import ROOT
from tools import image_sbom
from tools.weights import bundled, image_licences

MAX_BYTES = 1_300_000_000


def test_it_is_within_its_budget(image: str) -> None:
    size = int(docker("image", "inspect", "--format={{.Size}}", image))
    assert size < MAX_BYTES


def test_its_labels_say_what_it_is(image: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = docker("image", "inspect", "--format={{json .Config.Labels}}", image)
    labels = {key.removeprefix("org.opencontainers.image."): value
              for key, value in json.loads(found).items()}  # fmt: skip
    assert labels["version"] == project["version"]
    assert labels["description"] == project["description"]
    assert labels["licenses"] == image_licences(bundled(ROOT / "checkpoints"))
    assert labels["revision"] not in ("", "unknown")
    variables = docker("image", "inspect", "--format={{json .Config.Env}}", image)
    assert f"DRAGOMAN_REVISION={labels['revision']}" in json.loads(variables)


def test_every_package_has_the_pinned_version(image: str) -> None:
    script = (
        "from importlib.metadata import distributions\n"
        "for each in distributions(): print(each.name, each.version)"
    )
    found = dict(line.split() for line in run_once(image, "python", "-c", script).splitlines())
    lines = (ROOT / "constraints-runtime.txt").read_text(encoding="utf-8").splitlines()
    pinned = {name.lower().replace("-", "_"): version
              for name, _, version in (line.partition("==") for line in lines)}  # fmt: skip
    installed = {name.lower().replace("-", "_"): version.partition("+")[0]
                 for name, version in found.items()}  # fmt: skip
    installed.pop("dragoman")
    assert installed.items() <= pinned.items()
    assert found["torch"].endswith("+cpu"), "the build for CUDA is five times as large"


def test_it_holds_no_compiler_and_no_cache(image: str) -> None:
    script = (
        "for name in gcc g++ cc c++ ld make; do command -v $name; done;"
        " find /var/lib/apt/lists /root/.cache /tmp /build /package -type f -size +0 2>/dev/null;"
        " true"
    )
    # As it is: nothing is mounted over /tmp.
    flags = ("--rm", "--network=host", "--user=0", "--entrypoint=sh")
    assert docker("run", *flags, image, "-c", script) == ""


def test_it_holds_nothing_that_installs_packages(image: str) -> None:
    for python in ("/opt/dragoman/bin/python", "/usr/local/bin/python3"):
        for module in ("pip", "ensurepip"):
            with pytest.raises(AssertionError, match=f"No module named {module}"):
                run_once(image, python, "-m", module)
    script = r"find / -xdev \( -name pip -o -name 'pip-*' -o -name 'pip3*' \) 2>/dev/null; true"
    assert run_once(image, "sh", "-c", script) == ""


def test_it_holds_none_of_pytorchs_own_tests_and_headers(image: str) -> None:
    script = (
        "cd /opt/dragoman/lib/python3*/site-packages/torch && ls bin &&"
        " ls -d include test share/cmake lib/*test* lib/libaoti_custom_ops.so 2>/dev/null; true"
    )
    assert run_once(image, "sh", "-c", script) == "torch_shm_manager"


def test_the_licences_of_code_and_weights_are_in_it(image: str) -> None:
    for name in ("LICENSE", "NOTICE", "LICENSES/CC-BY-SA-4.0.txt", "LICENSES/CC-BY-4.0.txt"):
        assert run_once(image, "cat", name) == (ROOT / name).read_text(encoding="utf-8").strip()


def test_its_bill_of_materials_is_of_what_is_in_it(image: str, tmp_path: Path) -> None:
    output = tmp_path / "bill.json"
    python = ["docker", "run", "--rm", "--interactive", *CONFINED, "--entrypoint=python", image]
    assert image_sbom.main([str(output), "--", *python, "-"]) == 0
    components = json.loads(output.read_text(encoding="utf-8"))["components"]
    kinds = {each["bom-ref"].partition(":")[0] for each in components}
    assert kinds == {"deb", "python", "pypi", "weights"}
    names = {each["name"] for each in components}
    assert {"libc6", "torch", "dragoman", "en-de-small"} <= names
    assert not {"pip", "ruff", "pytest"} & names


def test_it_holds_the_compiled_kernels(image: str) -> None:
    script = (
        "from importlib.util import find_spec; print(find_spec('model.native._kernels').origin)"
    )
    assert run_once(image, "python", "-c", script).endswith(".so")


def test_only_its_own_folder_belongs_to_the_user(image: str) -> None:
    script = "find / -xdev -user 10001 -not -path '/tmp*' 2>/dev/null; true"
    assert run_once(image, "sh", "-c", script) == "/app/runs"


def test_every_sub_command_starts_for_a_user_the_image_does_not_know(image: str) -> None:
    for command in ("serve", "train", "evaluate", "translate", "bench"):
        said = run_once(image, "dragoman", command, "--help", flags=["--user=4711:4711"])
        assert said.startswith(f"usage: dragoman {command}")
    assert run_once(image, "dragoman", "--version").startswith("dragoman ")


def test_it_becomes_healthy_and_translates(container: Container) -> None:
    wait_for(
        lambda: True if container.inspect("{{.State.Health.Status}}") == "healthy" else None,
        "healthy",
    )
    body = {"q": "A dog runs.", "source": "en", "target": "zh"}
    reply = httpx.post(f"{container.url}/translate", json=body, timeout=60.0, trust_env=False)
    assert reply.status_code == 200
    assert any("\u4e00" <= character <= "\u9fff" for character in reply.json()["translatedText"])


def test_it_runs_as_a_user_without_rights_on_a_root_it_cannot_write(container: Container) -> None:
    assert container.execute("id", "-u") == "10001"
    status = container.execute("cat", "/proc/1/status")
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status
    with pytest.raises(AssertionError, match="Read-only file system"):
        container.execute("touch", "/app/runs/new")
    container.execute("touch", "/tmp/new")  # the container's


def test_a_server_that_is_not_there_is_unhealthy(image: str) -> None:
    with pytest.raises(AssertionError, match="Connection refused"):
        run_once(image, "python", "-m", "service.probe", flags=["--env=DRAGOMAN_PORT=1"])


def test_sigterm_ends_it_with_0_and_a_missing_checkpoint_with_1(image: str) -> None:
    with serving(image, *CONFINED) as container:
        container.wait_status("/readyz", 200)
        container.send_sigterm()
        assert container.wait() == 0
    with serving(image, *CONFINED, DRAGOMAN_CHECKPOINT="/nowhere") as container:
        assert container.wait() == 1
