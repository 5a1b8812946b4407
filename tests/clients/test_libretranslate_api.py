"""LibreTranslate's own tests of its API, unmodified, against a live server.

`.ci/clients` takes them out of LibreTranslate's wheel; they are not a part of this project. They
ask Flask's client, in whose place `support.flask_client` asks over HTTP, and translate into
Spanish, so a random network stands for that.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from model.text.languages.tags import LanguagePair
from support.flask_client import OUTCOMES_VARIABLE, URL_VARIABLE
from support.running_server import ROOT, running_server
from support.tiny_checkpoint import write_tiny_checkpoint

FOLDER = ROOT / os.environ.get("DRAGOMAN_CLIENTS", "build/clients") / "libretranslate-tests"
NAMES = [
    name
    for path in sorted(FOLDER.glob("test_*.py"))
    for name in re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
]
NUM_TESTS = 14


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """How each of them ended."""
    folder = tmp_path_factory.mktemp("spanish")
    spanish = (LanguagePair(source="en", target="es"), LanguagePair(source="es", target="en"))
    checkpoint = write_tiny_checkpoint(folder / "tiny", pairs=spanish)
    plugin = ["-p", "support.flask_client", "--noconftest", "-p", "no:cacheprovider"]
    with running_server(checkpoint, folder / "log.jsonl") as server:
        subprocess.run(
            [sys.executable, "-m", "pytest", *plugin, "-c", os.devnull, str(FOLDER)],
            env=os.environ
            | {
                URL_VARIABLE: server.url,
                OUTCOMES_VARIABLE: str(folder / "outcomes.json"),
                "PYTHONPATH": str(Path(__file__).parents[1]),
            },
            check=False,
            timeout=120,
        )
    found: Mapping[str, str] = json.loads((folder / "outcomes.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.skipif(not NAMES, reason="they are not there: .ci/clients says why")
def test_all_of_them_are_there(outcomes: Mapping[str, str]) -> None:
    assert len(set(NAMES)) == NUM_TESTS
    assert sorted(outcomes) == sorted(NAMES)


@pytest.mark.client("LibreTranslate's test_api")
@pytest.mark.parametrize("name", NAMES)
def test_what_it_asks_for_is_there(outcomes: Mapping[str, str], name: str) -> None:
    assert outcomes[name] == "passed"
