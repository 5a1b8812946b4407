"""How well the bundled checkpoints translate: both directions, beside published scores."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import scores
from model.checkpoint.description.config_file import read_manifest
from model.config import SearchConfig
from model.errors import DataError
from model.loading import load_for_decoding
from model.offline.translator import Translator
from support.tiny_checkpoint import EN_ZH, ZH_EN, generated_pairs, write_tiny_checkpoint


def write_sets(data: Path) -> None:
    pairs = list(generated_pairs(3))
    for path in {text.path for sets in scores.SETS.values() for text in sets}:
        for language, side in (("en", 0), ("zh", 1)):
            file = data / f"{path}.{language}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")


@pytest.mark.parametrize("named", ["checkpoints", "checkpoints/a"])  # the folder of all, and one
def test_every_set_of_every_direction_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], named: str
) -> None:
    write_sets(tmp_path / "data")
    (tmp_path / "checkpoints").mkdir()
    write_tiny_checkpoint(tmp_path / "checkpoints" / "a")
    flags = ["--checkpoints", tmp_path / named, "--results", tmp_path / "results"]
    monkeypatch.setattr(sys, "argv", ["scores", *map(str, [tmp_path / "data", *flags])])
    scores.main()
    (file,) = (tmp_path / "results").iterdir()
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    directions = ("en-zh", "zh-en")  # the checkpoint's
    wanted = [(name, text.path) for name in directions for text in scores.SETS[name]]
    assert [(row["direction"], row["path"]) for row in rows] == wanted
    assert all(row["num_segments"] == 3 for row in rows)
    assert "tok:zh" in rows[0]["bleu_signature"]
    assert "tok:13a" in rows[-1]["bleu_signature"]
    printed = capsys.readouterr().out
    assert "| zh-en | segments | BLEU | chrF2 | OPUS-MT | NLLB | Argos |" in printed
    assert "| news (newstest2019) | 3 | 0.0 |" in printed
    assert "| 23.9 | 26.0 | 26.6 |" in printed


def test_source_and_reference_follow_the_direction(tmp_path: Path) -> None:
    write_sets(tmp_path)
    text = scores.SETS["zh-en"][0]
    sources, references = scores.read_sides(tmp_path, text, ZH_EN)
    assert (references, sources) == scores.read_sides(tmp_path, text, EN_ZH)
    assert sources[0].endswith(("。", "！", "？"))


@pytest.mark.parametrize("direction", scores.SETS)
def test_news_was_written_in_the_language_it_is_translated_from(direction: str) -> None:
    source, target = direction.split("-")
    paths = [text.path for text in scores.SETS[direction]]
    assert f"{direction}/test/newstest2019" in paths
    assert all(path.split("/")[0] in {direction, f"{target}-{source}"} for path in paths)


def test_a_missing_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"docs-heldout\.en"):
        scores.read_sides(tmp_path, scores.SETS["en-zh"][0], EN_ZH)


def test_pairs_that_were_learnt_are_counted_and_scored_apart(tmp_path: Path) -> None:
    write_sets(tmp_path)
    directory = write_tiny_checkpoint(tmp_path / "a")
    (corpus, *_) = (licence.corpus for licence in read_manifest(directory).licences)
    translator = Translator(load_for_decoding(directory))
    sources = [source for source, _ in generated_pairs(3)]
    answer = translator.translate(sources, EN_ZH, SearchConfig(beam_size=4))[1].text
    (tmp_path / "en-zh" / "train").mkdir()
    for name, lines in (
        ("dev/docs-heldout.zh", ["一", answer, "三"]),
        (f"train/{corpus}.en", [sources[1].upper()]),
        (f"train/{corpus}.zh", [answer]),
    ):
        text = "".join(f"{line}\n" for line in lines)
        (tmp_path / "en-zh" / name).write_text(text, encoding="utf-8")
    row = next(scores.score_checkpoint(directory, tmp_path))
    assert (row.num_segments, row.num_learnt) == (3, 1)
    assert row.chrf > 0
    assert (row.bleu_unlearnt, row.chrf_unlearnt) == (0.0, 0.0)
    assert "1 of 3 segments stand in the training text" in scores.table("en-zh", [row])
