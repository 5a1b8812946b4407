"""What a change of pins costs whoever pulls: the image is built again, and layers are compared.

`DRAGOMAN_BUILD_FLAGS` are those of the first build, which `make test-image` hands on.
"""

import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.containers import docker
from support.running_server import ROOT

FLAGS = shlex.split(os.environ.get("DRAGOMAN_BUILD_FLAGS", ""))
BUILD_SECONDS = 900.0
Change = Callable[[str], str]

pytestmark = [
    pytest.mark.skipif(not FLAGS, reason="built again by `make test-image` only"),
    pytest.mark.timeout(2 * BUILD_SECONDS),
]


def layers(image: str) -> dict[str, str]:
    """Digest of each layer by its instruction, those of the base left out."""
    digests = docker("image", "inspect", '--format={{join .RootFS.Layers "\\n"}}', image).split()
    history = docker("history", "--no-trunc", "--format={{.CreatedBy}}", image).splitlines()
    made = [line for line in reversed(history) if re.match(r"COPY|RUN|WORKDIR", line)]
    return dict(zip(made, digests[-len(made) :], strict=True))


def rebuilt(folder: Path, *flags: str, **changes: Change) -> str:
    """An image of a copy of the sources, in which some files are others."""
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    names = [line.removeprefix("!") for line in allowed if line.startswith("!")]
    folder.mkdir(exist_ok=True)
    no_bytecode = shutil.ignore_patterns("__pycache__")
    for name in ("Dockerfile", ".dockerignore", *names):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=no_bytecode)
        else:
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for name, change in changes.items():
        [path] = folder.glob(f"{name.replace('_', '-')}.*")
        before = path.read_text(encoding="utf-8")
        path.write_text(change(before), encoding="utf-8")
        assert path.read_text(encoding="utf-8") != before
    return docker("build", *FLAGS, *flags, "--quiet", str(folder), seconds=BUILD_SECONDS)


def built_wheel(folder: Path) -> Path:
    """The wheel of the first build, which other pins of tools would compile anew for minutes."""
    output = f"--output={folder}"
    docker("build", *FLAGS, "--target=wheel", output, "--quiet", str(ROOT), seconds=BUILD_SECONDS)
    return folder


def moved(image: str, other: str) -> set[str]:
    """The instructions whose layers are not the same."""
    before, after = layers(image), layers(other)
    assert before.keys() == after.keys()
    return {made.partition(" #")[0] for made, digest in before.items() if after[made] != digest}


def test_newer_tools_and_their_settings_move_no_dependency(image: str, tmp_path: Path) -> None:
    other = rebuilt(
        tmp_path / "sources",
        f"--build-context=wheel={built_wheel(tmp_path / 'wheel')}",
        constraints=lambda text: re.sub(r"(?m)^ruff==.*", "ruff==0.0.1", text),
        constraints_runtime=lambda text: f"{text}another==1\n",
        pyproject=lambda text: text.replace("line-length = 100", "line-length = 99"),
    )
    assert moved(image, other) <= {"COPY /package /"}


def test_other_dependencies_leave_pytorch_where_it_is(image: str, tmp_path: Path) -> None:
    other = rebuilt(tmp_path, "--build-arg=EXTRAS=otel")
    assert moved(image, other) == {"COPY /added /"}
