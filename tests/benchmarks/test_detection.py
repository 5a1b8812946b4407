"""How often the language of a text is detected: every set, among every choice of candidates."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import detection
from model.errors import DataError

TEXTS = {
    "en": "Where is the station?",
    "de": "Wo ist der Bahnhof?",
    "es": "¿Dónde está la estación?",
    "fr": "Où est la gare ?",
    "ja": "駅はどこですか。",
    "zh": "车站在哪里？",
}


def _write_sets(data: Path) -> None:
    for corpus in (detection.FLORES, detection.TATOEBA):
        for language, text in TEXTS.items():
            for folder in {f"en-{language}"} if language != "en" else {"en-de"}:
                path = data / folder / "test" / f"{corpus}.{language}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{text}\n" * 3, encoding="utf-8")
    (data / detection.PHRASES).write_text("en\tde\tzh\nHi\tHallo|Hello\t你好\n", encoding="utf-8")


def test_every_set_is_detected_among_all_candidates_that_have_its_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_sets(tmp_path / "data")
    candidates = {"two": ("en", "zh-Hans"), "three": ("en", "de", "zh-Hans")}
    monkeypatch.setattr(detection, "CANDIDATES", candidates)
    flags = [tmp_path / "data", "--limit", 2, "--results", tmp_path / "results"]
    monkeypatch.setattr(sys, "argv", ["detection", *map(str, flags)])
    detection.main()
    (file,) = (tmp_path / "results").iterdir()
    result = json.loads(file.read_text(encoding="utf-8"))
    rows = result["rows"]
    assert len(rows) == 2 * 3 * (2 + 3)
    assert {row["num_texts"] for row in rows if row["corpus"] != detection.PHRASES} == {2}
    german = [row for row in rows if row["language"] == "de"]
    assert {row["num_right"] for row in german if row["corpus"] == detection.FLORES} == {2}
    assert [row["mistaken_for"] for row in german if row["corpus"] == detection.PHRASES] == [
        {"en": 1},
        {"en": 1},
    ]
    assert [one["candidates"] for one in result["memory"]] == ["two", "three"] * 2
    assert result["memory"][0]["num_bytes"] < 2**20, "two scripts need no statistics"
    assert "| three | flores101-devtest | de | 2 | 100.0 % | 100.0 % |" in capsys.readouterr().out


def test_a_set_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"flores101-devtest\.en"):
        list(detection.read_texts(tmp_path, 2))
