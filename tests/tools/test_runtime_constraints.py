"""The image's pins are those of CI, no fewer than it needs and no more."""

import re

import pytest

from support.running_server import ROOT
from tools.audit import read_pins
from tools.runtime_constraints import needed, runtime_constraints
from tools.sbom import SbomError

CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")
RUNTIME = (ROOT / "constraints-runtime.txt").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def stage(name: str) -> str:
    """The instructions of one stage of the Dockerfile."""
    found = re.search(rf"^FROM \S+ AS {name}\n(.*?)^FROM ", DOCKERFILE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_file_is_what_the_image_needs_of_the_common_pins() -> None:
    expected = runtime_constraints(CONSTRAINTS, needed(ROOT / "pyproject.toml"))
    assert expected == RUNTIME, "python -m tools.runtime_constraints constraints-runtime.txt"
    assert read_pins(RUNTIME).items() <= read_pins(CONSTRAINTS).items()
    needed_at_least = {"torch", "fastapi", "redis", "opentelemetry-sdk", "pybind11", "ziglang"}
    assert needed_at_least <= {*read_pins(RUNTIME)}
    assert not {"ruff", "pytest", "transformers", "pip-audit", "mypy"} & {*read_pins(RUNTIME)}


def test_what_has_no_pin_is_an_error() -> None:
    with pytest.raises(SbomError, match=r"no pin of b, c"):
        runtime_constraints("# a comment\na==1\nruff==2\n", {"a", "b", "c"})
    kept = runtime_constraints("A_b.c==1\nruff==2\n", {"a-b-c"})
    assert kept.splitlines()[-1] == "A_b.c==1"
    assert "ruff" not in kept


def test_each_layer_of_the_image_is_made_of_its_own_pins_alone() -> None:
    assert "ARG CONSTRAINTS=constraints-runtime.txt" in stage("pins")
    copied = {name: re.findall(r"^COPY (.*)$", stage(name), re.MULTILINE)
              for name in ("pins", "torch", "dependencies")}  # fmt: skip
    assert copied == {
        "pins": ["${CONSTRAINTS} constraints.txt", "pyproject.toml ./"],
        "torch": ["--from=pins /pins/torch.txt ./"],
        "dependencies": ["--from=pins /pins/constraints.txt /pins/requirements.txt ./"],
    }
    assert "ARG EXTRAS" not in stage("torch") + stage("dependencies")
    final = DOCKERFILE.rpartition("\nFROM ")[2]
    layers = re.findall(r"^COPY --from=(\S+)", final, re.MULTILINE)
    assert layers == ["torch", "dependencies", "package", "package"]
    assert not re.search(r"(?<!-)\bconstraints\.txt", stage("compiled") + stage("package"))


def test_the_compiler_stays_in_the_stage_that_makes_the_wheel() -> None:
    with_compiler = [name for name in re.findall(r" AS (\w+)$", DOCKERFILE, re.MULTILINE)
                     if "ziglang" in stage(name)]  # fmt: skip
    assert with_compiler == ["compiled"]
    assert "RUN mkdir /dist && .ci/build-wheel /dist\n" in stage("compiled")
    assert stage("wheel").splitlines() == ["COPY --from=compiled /dist /", "", ""]
    assert "--mount=type=bind,from=wheel,target=/wheel" in stage("package")
