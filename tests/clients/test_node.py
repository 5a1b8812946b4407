"""Clients of both APIs for Node: `node/run.cjs` makes the calls, here is what must come of them."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.real_clients import Live

TEXT = "Where is the station?"
GERMAN = "Guten Tag, wie geht es Ihnen?"
SCRIPT = Path(__file__).parent / "node/run.cjs"

Outcomes = dict[str, dict[str, Any]]

deepl_node = pytest.mark.client("deepl-node (npm)")
libretranslate = pytest.mark.client("libretranslate (npm)")


def _outcomes(live: Live, client: str) -> Outcomes:
    """What became of every call of a client, by its name."""
    modules = live.clients / "node_modules"
    program = shutil.which("node")
    if program is None or not (modules / client).is_dir():
        pytest.skip("it is not installed: .ci/clients says why")
    environment = os.environ | {"NODE_PATH": str(modules), "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [program, str(SCRIPT), client, live.url, live.key],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    outcomes: Outcomes = json.loads(done.stdout)
    return outcomes


@pytest.fixture(scope="module")
def deepl(live: Live) -> Outcomes:
    return _outcomes(live, "deepl-node")


@pytest.fixture(scope="module")
def libre(live: Live) -> Outcomes:
    return _outcomes(live, "libretranslate")


@deepl_node
@pytest.mark.parametrize(("name", "target"), [("german", "de"), ("chinese", "zh-Hans")])
def test_deepl_node_translates(live: Live, deepl: Outcomes, name: str, target: str) -> None:
    found = deepl[name]["value"]
    assert (found["text"], found["detectedSourceLang"]) == (
        live.translated(TEXT, "en", target),
        "en",
    )


@deepl_node
def test_deepl_node_is_told_the_language_of_each_text(live: Live, deepl: Outcomes) -> None:
    german, english = deepl["detected"]["value"]
    assert [german["detectedSourceLang"], english["detectedSourceLang"]] == ["de", "en"]
    assert [german["text"], english["text"]] == [live.translated(GERMAN, "de", "en"), TEXT]


@deepl_node
@pytest.mark.parametrize("name", ["splitting", "wishes"])
def test_deepl_node_has_its_options_taken(live: Live, deepl: Outcomes, name: str) -> None:
    assert deepl[name]["value"]["text"] == live.translated(TEXT, "en", "de")


@deepl_node
def test_deepl_node_is_told_the_type_of_model(deepl: Outcomes) -> None:
    assert deepl["low_latency"]["value"]["modelTypeUsed"] == "latency_optimized"


@deepl_node
@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("formality", "DeepLError", "formality"),
        ("unknown_target", "DeepLError", "target_lang"),
        ("wrong_key", "AuthorizationError", "Authorization"),
    ],
)
def test_deepl_node_reports_a_refusal(deepl: Outcomes, name: str, error: str, words: str) -> None:
    assert deepl[name]["error"] == error
    assert words in deepl[name]["message"]


@deepl_node
def test_deepl_node_gets_its_tags_back(deepl: Outcomes) -> None:
    assert re.findall("<.*?>", deepl["tags"]["value"]["text"]) == ["<p>", "<b>", "</b>", "</p>"]


@deepl_node
def test_deepl_node_translates_a_document(live: Live, deepl: Outcomes) -> None:
    assert deepl["document"]["value"] == {"done": True, "text": live.translated(TEXT, "en", "de")}


@deepl_node
def test_deepl_node_lists_languages(deepl: Outcomes) -> None:
    assert [one["code"] for one in deepl["sources"]["value"]] == ["de", "en", "zh"]
    targets = [one["code"] for one in deepl["targets"]["value"]]
    assert targets == ["de", "en-GB", "en-US", "zh", "zh-HANS"]


@deepl_node
def test_deepl_node_reads_its_usage(deepl: Outcomes) -> None:
    character = deepl["usage"]["value"]["character"]
    assert character["count"] > len(TEXT)
    assert character["limit"] > character["count"]


@deepl_node
def test_deepl_node_uses_a_glossary(deepl: Outcomes) -> None:
    found = deepl["glossary"]["value"]
    assert "Haltepunkt" in found["text"]
    assert found["entries"] == {"station": "Haltepunkt"}
    assert (found["name"], found["count"], found["left"]) == ("places", 1, [])


@deepl_node
def test_deepl_node_uses_a_glossary_of_several_dictionaries(deepl: Outcomes) -> None:
    found = deepl["dictionaries"]["value"]
    assert "Haltepunkt" in found["text"]
    assert found["pairs"] == [["en", "de", 1], ["en", "zh", 1]]
    assert found["left"] == []


@deepl_node
def test_deepl_node_lists_languages_of_glossaries(deepl: Outcomes) -> None:
    pairs = [(one["sourceLang"], one["targetLang"]) for one in deepl["glossary_languages"]["value"]]
    assert ("en", "de") in pairs


@libretranslate
@pytest.mark.parametrize(("name", "target"), [("german", "de"), ("chinese", "zh-Hans")])
def test_libretranslate_translates(live: Live, libre: Outcomes, name: str, target: str) -> None:
    assert libre[name]["value"] == live.translated(TEXT, "en", target)


@libretranslate
def test_libretranslate_translates_from_auto(live: Live, libre: Outcomes) -> None:
    assert libre["detected"]["value"] == live.translated(GERMAN, "de", "en")


@libretranslate
def test_libretranslate_translates_a_list(live: Live, libre: Outcomes) -> None:
    assert libre["list"]["value"] == [live.translated(one, "en", "de") for one in (TEXT, "Hello")]


@libretranslate
def test_libretranslate_knows_which_languages_there_are(libre: Outcomes) -> None:
    assert libre["unknown_target"]["error"] == "TypeError"
