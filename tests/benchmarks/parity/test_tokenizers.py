"""The comparison of tokenizers: what is compared, what counts as equal, what is written."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

from benchmarks.parity.text import spread_lines
from benchmarks.parity.tokenizer_families import TOKENIZERS, Learned
from benchmarks.parity.tokenizers import Text, compared, main, parse_arguments

BY_NAME = {family.name: family for family in TOKENIZERS}
LINES = ["The cat sees the river.", "Where is  it?", "naïve ½ ™ １２", "</s> is text"]
TEXT = Text(training=LINES, sources=LINES, targets=LINES)


def test_every_line_is_counted_once() -> None:
    found = compared(BY_NAME["CTranslate2, OpenNMT"], TEXT)
    assert (found.num_encoded, found.num_decoded, found.num_differing) == (4, 4, 0)


def test_a_wrong_reference_is_seen_line_by_line() -> None:
    family = BY_NAME["Marian student"]

    def wrong(folder: Path) -> object:
        right = family.open(folder)
        return replace(
            right, encode=lambda line: [*right.encode(line), 5], decode=lambda _ids: "other"
        )

    found = compared(replace(family, open=wrong), TEXT)  # type: ignore[arg-type]
    assert (found.num_encoded, found.num_ties, found.num_decoded) == (0, 0, 0)
    assert found.num_differing == 8
    assert found.differences[:5] == ["source 0", "source 1", "source 2", "source 3", "target 0"]


def test_lines_with_a_token_of_the_reference_are_skipped() -> None:
    family = BY_NAME["Marian student"]

    def strict(folder: Path) -> object:
        return replace(family.open(folder), skips=lambda line: "</s>" in line)

    found = compared(replace(family, open=strict), TEXT)  # type: ignore[arg-type]
    assert (found.num_encoded, found.num_skipped, found.num_decoded) == (3, 2, 3)


def test_lines_are_spread_over_the_corpora_of_a_split(tmp_path: Path) -> None:
    for name in ("en-de/test/one.de", "en-fr/test/two.fr", "en-de/dev/three.de"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n\n second \n", encoding="utf-8")
    found = spread_lines(str(tmp_path), 3, split="test", languages=("de", "fr"))
    assert found == ["en-de/test/one.de", "en-fr/test/two.fr", "second"]
    all_of_them = spread_lines(str(tmp_path), 9, split="test", languages=("de", "fr"))
    assert all_of_them == ["en-de/test/one.de", "second", "en-fr/test/two.fr"], "none twice"


def test_a_run_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "OPUS-MT release"
    assert main(["--lines", "20", "--only", name, "--results", str(tmp_path)]) == 0
    (path,) = tmp_path.iterdir()
    (row,) = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert (row["family"], row["num_encoded"], row["num_decoded"]) == (name, 20, 20)
    assert name in capsys.readouterr().out
    with pytest.raises(SystemExit):
        parse_arguments(["--lines", "0"])


def test_pieces_are_learned_from_the_text_that_is_given() -> None:
    assert Learned(lines=["zyx zyx"] * 30).spm(pad_id=-1).count(b"zyx") >= 1
