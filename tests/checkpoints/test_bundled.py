"""What is bundled: whole, small, accounted for, and able to translate."""

from pathlib import Path

import pytest

from model.loading import load_for_decoding
from model.offline.translator import Translator

CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"
DIRECTORIES = sorted(path for path in CHECKPOINTS.iterdir() if path.is_dir())
MEGABYTE = 1_000_000
WORDS = {  # what must be in the translation, by checkpoint and target
    "en-de-small": {
        "de": ("The dog is sleeping under the table.", ("Hund", "Tisch")),
        "en": ("Wir müssen jetzt nach Hause gehen.", ("go home",)),
    },
    "en-zh-small": {
        "zh-Hans": ("To install the package, run the following command.", ("安装", "运行", "命令"))
    },
    "zh-en-small": {"en": ("默认情况下，日志写入标准错误。", ("default", "log", "error"))},
}


def size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


def test_all_directions_are_bundled_and_light() -> None:
    assert [path.name for path in DIRECTORIES] == sorted(WORDS)
    assert sum(map(size, DIRECTORIES)) <= 40 * MEGABYTE


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda path: path.name)
def test_a_bundled_checkpoint_translates_and_accounts_for_itself(directory: Path) -> None:
    assert size(directory) <= 15 * MEGABYTE
    checkpoint = load_for_decoding(directory)  # verifies every checksum
    manifest = checkpoint.manifest
    assert manifest.name == directory.name
    expected = WORDS[directory.name]
    assert [pair.target for pair in manifest.pairs] == [*expected]
    translator = Translator(checkpoint)
    for pair, (text, words) in zip(manifest.pairs, expected.values(), strict=True):
        [translation] = translator.translate([text], pair)
        assert all(word in translation.text for word in words)

    card = (directory / "card.md").read_text(encoding="utf-8")
    assert all(f"[{one.corpus}]({one.url})" in card for one in manifest.licences)
    assert all(one.licence in card for one in manifest.licences)
    assert manifest.licence in card
    assert f"positions {manifest.network.position};" in card
    assert f"dragoman train experiments/{directory.name}.yaml" in card
    assert "test/tatoeba-test-v2021-08-07 |" in card


def test_a_typographic_apostrophe_is_read_as_the_common_one() -> None:
    translator = Translator(load_for_decoding(CHECKPOINTS / "en-de-small"))
    pair = translator.manifest.pair("en", "de")
    assert pair is not None
    texts = ["I don't know what it's about.", "We can't open Peter's file – it isn't there."]
    plain = translator.translate(texts, pair)
    typographic = translator.translate([text.replace("'", "’") for text in texts], pair)
    assert [one.text for one in typographic] == [one.text for one in plain]
    assert all("nicht" in one.text or "kein" in one.text for one in typographic)
