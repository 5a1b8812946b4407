"""The bill of an image is made of what its own Python finds; here that is the tests' own."""

import json
import sys
from collections.abc import Callable
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from support.running_server import ROOT
from tools.audit import read_pins
from tools.image_sbom import ImageSbomError, bill, check_pins, check_weights, look, main

LICENCES = "Apache-2.0 AND CC-BY-SA-4.0"
CHECKPOINTS = ROOT / "checkpoints"
PINS = {"fastapi": "0.165.0", "torch": "2.13.0"}


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return look([sys.executable, "-"])


def packages(**versions: str) -> dict[str, Any]:
    return {"packages": [{"name": name, "version": version} for name, version in versions.items()]}


def test_the_inventory_is_what_is_installed(found: dict[str, Any]) -> None:
    held = {each["name"]: each for each in found["packages"]}
    assert held["torch"]["version"] == version("torch")
    assert held["fastapi"]["expression"] == "MIT"
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    check_weights(found, CHECKPOINTS)


def test_the_bill_names_packages_weights_and_their_licences(found: dict[str, Any]) -> None:
    document = bill(found, LICENCES)
    held = {each["bom-ref"]: each for each in document["components"]}
    assert len(held) == len(document["components"]), "a reference that is not unique"
    torch = held[f"pypi:torch@{version('torch')}"]
    assert torch["purl"] == f"pkg:pypi/torch@{version('torch').replace('+', '%2B')}"
    models = [each for each in held.values() if each["type"] == "machine-learning-model"]
    assert [each["name"] for each in models] == ["en-de-small", "en-zh-small", "zh-en-small"]
    assert all(each["licenses"] == [{"expression": "CC-BY-SA-4.0"}] for each in models)
    assert document["metadata"]["component"]["licenses"] == [{"expression": LICENCES}]
    assert bill(deepcopy(found), LICENCES) == document


def test_debians_packages_are_told_by_architecture_and_release() -> None:
    row = {"name": "libc6", "version": "1:2.41+b1", "architecture": "amd64"}
    system = {"ID": "debian", "VERSION_ID": "13"}
    own = {"name": "dragoman", "version": "0.2.0", "expression": "Apache-2.0", "licences": []}
    found = {"system": system, "debian": [row], "python": "3.11.16", "packages": [own]}
    document = bill({**found, "weights": []}, LICENCES)
    [debian, python, package] = document["components"]
    assert debian["purl"] == "pkg:deb/debian/libc6@1%3A2.41%2Bb1?arch=amd64&distro=debian-13"
    assert python["purl"] == "pkg:generic/python@3.11.16"
    assert package["type"] == "application"


@pytest.mark.parametrize(
    ("held", "complaint"),
    [
        (packages(fastapi="0.165.0", torch="2.13.0+cpu", dragoman="0.2.0"), None),
        (packages(**{"nvidia-cublas": "13.1", "cuda_bindings": "13.0", "triton": "3"}), None),
        (packages(fastapi="0.164.0"), "fastapi 0.164.0, but 0.165.0 is pinned"),
        (packages(pip="24.0"), "pip 24.0, but nothing is pinned"),
    ],
)
def test_a_package_without_its_pin_is_an_error(held: dict[str, Any], complaint: str | None) -> None:
    if complaint is None:
        check_pins(held, PINS)
    else:
        with pytest.raises(ImageSbomError, match=complaint):
            check_pins(held, PINS)


def damage(found: dict[str, Any]) -> None:
    found["weights"][0]["digests"]["model.safetensors"] = "0" * 64


def leave_out(found: dict[str, Any]) -> None:
    del found["weights"][0]


def rename(found: dict[str, Any]) -> None:
    found["weights"][0]["description"]["name"] = "another"


@pytest.mark.parametrize("change", [damage, leave_out, rename])
def test_other_weights_are_an_error(
    found: dict[str, Any], change: Callable[[dict[str, Any]], None]
) -> None:
    other = deepcopy(found)
    change(other)
    with pytest.raises(ImageSbomError, match=r"other weights.*en-de-small"):
        check_weights(other, CHECKPOINTS)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("raise SystemExit(3)", "left with 3"),
        ("print('no JSON')", "is no JSON"),
        ("print('{}')", "lacks debian, packages, python, system, weights"),
    ],
)
def test_an_image_that_does_not_tell_has_no_bill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], script: str, reason: str
) -> None:
    output = tmp_path / "bill.json"
    assert main([str(output), "--", sys.executable, "-c", script]) == 1
    assert reason in capsys.readouterr().err
    assert not output.exists()


def test_the_bill_is_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: dict[str, Any]
) -> None:
    monkeypatch.chdir(ROOT)
    pins = read_pins((ROOT / "constraints-runtime.txt").read_text(encoding="utf-8"))
    runtime = [each for each in found["packages"] if each["name"] in {*pins, "dragoman"}]
    replay = tmp_path / "replay.json"
    replay.write_text(json.dumps(found | {"packages": runtime}))
    output = tmp_path / "build" / "bill.json"
    script = f"print(open({str(replay)!r}).read())"
    assert main([str(output), "--", sys.executable, "-c", script]) == 0
    written = json.loads(output.read_text())
    assert (written["bomFormat"], written["specVersion"]) == ("CycloneDX", "1.6")
