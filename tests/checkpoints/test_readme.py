"""The README's first words: what it says that the bundled models answer is what they answer."""

import json
import re
from pathlib import Path

import pytest

from model.loading import load_for_decoding
from model.native import kernels
from model.offline.translator import Translator
from model.text.languages.tags import LanguagePair

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(
    r"^    -d '(\{.+\})'\n(\{\"translatedText\".+\})$",
    (ROOT / "README.md").read_text(encoding="utf-8"),
    flags=re.MULTILINE,
)


def checkpoint_of(source: str, target: str) -> tuple[Path, LanguagePair]:
    for path in sorted((ROOT / "checkpoints").glob("*/config.json")):
        for pair in load_for_decoding(path.parent).manifest.pairs:
            if (pair.source.split("-")[0], pair.target.split("-")[0]) == (source, target):
                return path.parent, pair
    raise AssertionError(f"nothing bundled translates {source} to {target}")


def test_there_are_examples_in_three_languages() -> None:
    assert {json.loads(asked)["source"] for asked, _ in EXAMPLES} == {"en", "de", "zh"}


@pytest.mark.skipif(kernels.find_problem() is not None, reason="in float32 words may differ")
@pytest.mark.parametrize(("asked", "answer"), EXAMPLES)
def test_an_example_of_the_readme_is_what_one_sees(asked: str, answer: str) -> None:
    request = json.loads(asked)
    directory, pair = checkpoint_of(request["source"], request["target"])
    (found,) = Translator(load_for_decoding(directory)).translate([request["q"]], pair)
    assert found.text == json.loads(answer)["translatedText"]
