import json
import re
import sys
from pathlib import Path

import pytest

from support.running_server import ROOT
from tools.sbom import (
    IMAGE_EXTRAS,
    SbomError,
    generate,
    installed_requirements,
    main,
    mark_scopes,
    read_dependencies,
    runtime_closure,
)

NEEDS = {
    "server": ["Web_Frame>=1", "counter[shared]", "old; python_version < '3'"],
    "web-frame": ["parts", "nice; extra == 'colours'"],
    "counter": ["wrap", "store>2; extra == 'shared'", "other; extra == 'elsewhere'"],
    "parts": ["server"],
    "store": [],
    "wrap": [],
}


def test_what_is_needed_is_followed_through_markers_extras_and_circles() -> None:
    needed = {"server", "web-frame", "counter", "parts", "store", "wrap"}
    assert runtime_closure(["server"], NEEDS.get) == needed
    assert runtime_closure(["counter"], NEEDS.get) == {"counter", "wrap"}


def test_the_images_extras_are_required_too() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert f'ARG EXTRAS="{" ".join(IMAGE_EXTRAS)}"' in dockerfile
    needed = " ".join(read_dependencies(ROOT / "pyproject.toml"))
    assert {"fastapi", "limits[redis]", "opentelemetry-sdk"} <= set(
        re.findall(r"[a-z-]+(?:\[\w+\])?", needed)
    )
    assert "pytest" not in needed


def test_what_is_needed_and_not_installed_is_an_error() -> None:
    with pytest.raises(SbomError, match="web-frame is needed and not installed"):
        runtime_closure(["server"], {"server": ["web_frame"]}.get)


def test_components_are_marked_and_a_missing_one_is_an_error() -> None:
    document = {"components": [{"name": "Web_Frame"}, {"name": "pytest"}]}
    mark_scopes(document, {"web-frame"})
    assert [item["scope"] for item in document["components"]] == ["required", "excluded"]
    with pytest.raises(SbomError, match="it lacks limits, torch"):
        mark_scopes(document, {"web-frame", "torch", "limits"})


@pytest.mark.parametrize(
    "command",
    [
        ["/nowhere/cyclonedx-py"],
        [sys.executable, "-c", "raise SystemExit(1)"],
        [sys.executable, "-c", "print('no JSON')"],
        [sys.executable, "-c", "print('{}')"],
    ],
)
def test_a_generator_that_fails_is_an_error(command: list[str]) -> None:
    with pytest.raises(SbomError, match="cyclonedx-py"):
        generate(command)


def test_the_bundled_weights_are_in_the_bill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    needed = runtime_closure(read_dependencies(ROOT / "pyproject.toml"), installed_requirements)
    bill = {"bomFormat": "CycloneDX", "components": [{"name": name} for name in needed]}
    replay = tmp_path / "replay.py"
    replay.write_text(f"print({json.dumps(bill)!r})")
    output = tmp_path / "bill.json"
    assert main([str(output), sys.executable, str(replay)]) == 0
    components = json.loads(output.read_text())["components"]
    models = [each for each in components if each.get("type") == "machine-learning-model"]
    assert [each["name"] for each in models] == ["en-de-small", "en-zh-small", "zh-en-small"]


def test_no_file_is_written_when_the_bill_is_not_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bill = {"bomFormat": "CycloneDX", "components": [{"name": "torch"}]}
    replay = tmp_path / "replay.py"
    replay.write_text(f"print({json.dumps(bill)!r})")
    output = tmp_path / "bill.json"
    assert main([str(output), sys.executable, str(replay)]) == 1
    assert not output.exists()
    assert "it lacks" in capsys.readouterr().err
