"""The language of a bulk job's input is seen behind cells that say nothing."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from model.offline.bulk.planning import format_of_all, input_files
from model.text.languages.tags import LanguagePair
from service.cli.main import main
from service.cli.translate.bulk_texts import texts_of
from support.bulk_jobs import write_json_lines
from support.tiny_checkpoint import ZH_EN, write_tiny_checkpoint

_NUM_BLANK = 2_500
DE_EN = LanguagePair(source="de", target="en")


def _write(path: Path) -> list[str]:
    """A table whose cells begin to have texts in its third block; flags of its columns."""
    texts = [None] * _NUM_BLANK + ["河边有一只猫。"]
    if path.suffix == ".txt":
        path.write_text("".join(f"{text or '7.'}\n" for text in texts), encoding="utf-8")
        return []
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"text": texts}), path)
    elif path.suffix == ".jsonl":
        write_json_lines(path, [{"text": text} for text in texts])
    else:
        rows = "".join(f"{number},{text or ''}\n" for number, text in enumerate(texts))
        path.write_text(f"n,text\n{rows}", encoding="utf-8")
    return ["--columns", "text"]


@pytest.mark.parametrize("name", ["a.txt", "a.parquet", "a.jsonl", "a.csv"])
def test_all_cells_of_all_files_are_there_in_order(tmp_path: Path, name: str) -> None:
    names = [part for part in _write(tmp_path / name) if part == "text"]
    _write(tmp_path / f"b{name}")
    files = input_files(str(tmp_path))
    found = list(texts_of(files, format_of_all(files, names), names))
    blank = "7." if name == "a.txt" else ""
    assert found == [*[blank] * _NUM_BLANK, "河边有一只猫。"] * 2


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv"])
def test_empty_cells_at_the_beginning_are_not_taken_for_the_first_language(
    tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "served").mkdir()
    for folder, pair in (("de", DE_EN), ("zh", ZH_EN)):
        write_tiny_checkpoint(tmp_path / "served" / folder, name=folder, pairs=(pair,))
    flags = [*_write(tmp_path / name), "--checkpoint", str(tmp_path / "served"), "--to", "en"]
    flags += ["--beam-size", "1", "--block-rows", "5000"]
    main(["translate", str(tmp_path / name), str(tmp_path / "out"), *flags])
    assert "the text is taken as zh-Hans;" in capfd.readouterr().err
    assert "zh-Hans" in (tmp_path / "out" / "_dragoman" / "job.json").read_text(encoding="utf-8")
