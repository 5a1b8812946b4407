"""The benchmark of shortlists at its smallest: both ways are run, timed and scored."""

import json
from pathlib import Path

import pytest

from benchmarks import shortlist
from model.checkpoint.shortlist import add_shortlist
from support.shortlists import random_shortlist
from support.tiny_checkpoint import EN_ZH, generated_pairs, write_tiny_checkpoint


def test_both_ways_are_timed_in_turns_and_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))
    table = random_shortlist(600, 600, num_best=5)
    add_shortlist(tmp_path / "tiny", tmp_path / "listed", table, note="")
    for name, lines in zip(("en", "zh"), zip(*generated_pairs(6), strict=True), strict=True):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = [str(tmp_path / name) for name in ("listed", "en", "zh")]
    flags = ["--threads", "1", "--rounds", "2", "--singles", "2", "--results", str(tmp_path)]
    assert shortlist.main([*words, *flags]) == 0
    [path] = tmp_path.glob("shortlist-*.json")
    report = json.loads(path.read_text(encoding="utf-8"))
    assert 8 < report["mean_list_size"] < 200
    works = [(row["beam_size"], row["work"], row["num_lines"]) for row in report["rows"]]
    assert works == [
        (1, "file", 6),
        (1, "one at a time", 2),
        (4, "file", 6),
        (4, "one at a time", 2),
    ]
    for row in report["rows"]:
        assert {way: len(rounds) for way, rounds in row["seconds"].items()} == {
            "all tokens": 2,
            "shortlist": 2,
        }
        assert row["ratio"] > 0
        assert set(row["bleu"]) == (set(row["seconds"]) if row["work"] == "file" else set())
    assert "tokens a line" in capsys.readouterr().out
