"""Plans: which files a name means, and when an output folder holds the same job."""

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from model.errors import DataError
from model.offline.bulk.job import decoded_job
from model.offline.bulk.planning import (
    columns_of,
    continued,
    format_of_all,
    input_files,
    planned,
)
from support.bulk_jobs import job_of, wanted_of, write_json_lines

ROWS = [{"text": f"Line {number}."} for number in range(10)]


def _names(found: str) -> list[str]:
    return [Path(one.name).name for one in input_files(found)]


def test_a_folder_means_its_files_of_known_formats_by_name(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "_SUCCESS", ".a.jsonl", "README", "_c.jsonl"):
        (tmp_path / name).write_text("{}\n", encoding="utf-8")
    (tmp_path / "d.jsonl").mkdir()
    assert _names(str(tmp_path)) == ["a.jsonl", "b.jsonl"]
    assert _names(str(tmp_path / "[b]*")) == ["b.jsonl"]
    assert _names(str(tmp_path / "README")) == ["README"]


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"a\xff.jsonl")
    path.write_text("{}\n", encoding="utf-8")
    for name in (path, tmp_path):
        with pytest.raises(DataError, match=r"'.*/a\\udcff\.jsonl': the name is not UTF-8"):
            input_files(str(name))


def test_a_pattern_does_not_mean_what_the_job_itself_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("a", "ab", "out", "outer"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.jsonl").write_text("{}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for output in ("out", "./out/", str(tmp_path / "out")):
        found = input_files("*/*.jsonl", output)
        assert [Path(one.name).stem for one in found] == ["a", "ab", "outer"]
    assert [Path(one.name).stem for one in input_files("out", "out")] == ["out"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nothing", "nothing: no such file or folder"),
        ("*.csv", r"\*\.csv: no file fits the pattern"),
        (".", "the folder has no file of a known format"),
    ],
)
def test_a_name_that_means_nothing_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        input_files(str(tmp_path / name))


@pytest.mark.parametrize(
    ("files", "names", "problem"),
    [
        (["a.txt"], ["text"], "a.txt: has no columns, as every line is a text"),
        (["a.csv"], [], "a.csv: which columns"),
        (["a.csv", "b.jsonl"], ["text"], r"are of 2 formats \(csv, jsonl\)"),
        (["a.csv.gz"], ["text"], r"a.csv.gz: a packed file cannot be divided into blocks"),
        (["a.docx"], ["text"], r"a.docx: a bulk job reads .parquet, .pq, .jsonl"),
    ],
)
def test_files_without_one_format_are_refused(
    tmp_path: Path, files: list[str], names: list[str], problem: str
) -> None:
    for name in files:
        (tmp_path / name).touch()
    found = tuple(one for name in files for one in input_files(str(tmp_path / name)))
    with pytest.raises(DataError, match=problem):
        format_of_all(found, names)


def test_a_manifest_says_the_whole_job(tmp_path: Path) -> None:
    write_json_lines(tmp_path / "a.jsonl", ROWS)
    write_json_lines(tmp_path / "b.jsonl", ROWS[:3])
    job = job_of(str(tmp_path), names=["text"], beam=4)
    assert [(block.file, block.first_row, block.num_rows) for block in job.blocks] == [
        (0, 1, 4), (0, 5, 4), (0, 9, 2), (1, 1, 3),
    ]  # fmt: skip
    assert [block.number for block in job.blocks] == [0, 1, 2, 3]
    assert decoded_job(job.encoded(), "job.json") == job
    assert job_of(str(tmp_path), names=["text"], beam=4) == job


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"schema": 1}', b'{"schema": 2}'])
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(DataError, match=r"^job\.json: "):
        decoded_job(data, "job.json")


def test_a_job_goes_on_only_if_nothing_differs(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "a.jsonl", ROWS)
    wanted = wanted_of(str(path), names=["text"], beam=4)
    kept = planned(wanted)
    assert continued(kept, wanted, "out") == kept
    for other, problem in (
        (wanted_of(str(path), names=["text"], beam=2), "out: holds another job: beam is 4 there"),
        (wanted_of(str(path), names=["text"]), "beam is 4 there and None here"),
        (wanted_of(str(path), names=["text"], beam=4, max_rows=5), "rows of a block is 4 there"),
    ):
        with pytest.raises(DataError, match=problem):
            continued(kept, other, "out")
    second = write_json_lines(tmp_path / "b.jsonl", ROWS)
    with pytest.raises(DataError, match=r"b\.jsonl was not read there"):
        continued(kept, wanted_of(str(tmp_path), names=["text"], beam=4), "out")
    both = planned(wanted_of(str(tmp_path), names=["text"], beam=4))
    with pytest.raises(DataError, match=r"it read .*b\.jsonl as well"):
        continued(both, wanted, "out")
    second.unlink()


def test_a_file_that_was_written_again_goes_on_only_with_the_same_bytes(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "a.jsonl", ROWS)
    kept = planned(wanted_of(str(path), names=["text"]))
    data = path.read_bytes()
    os.utime(path, ns=(1, 1))
    later = continued(kept, wanted_of(str(path), names=["text"]), "out")
    assert later.inputs == (replace(kept.inputs[0], stamp="1"),)
    path.write_bytes(data.replace(b"3", b"4"))
    with pytest.raises(DataError, match=r"a\.jsonl had other content there, with the same size"):
        continued(kept, wanted_of(str(path), names=["text"]), "out")
    path.write_bytes(data[1:])
    with pytest.raises(DataError, match=r"a\.jsonl had \d+ bytes there and has \d+ now"):
        continued(kept, wanted_of(str(path), names=["text"]), "out")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (["b", "c"], (" b", "c ")),
        ([" b", "c "], (" b", "c ")),
        ([" c", "d"], ("c ", "d")),
        ([" d", "d"], (" d", "d")),
        (["d "], ("d",)),
        ([" e", "b"], ("e", "b")),  # no column of any name is like the first
        (["b", "b "], (" b", " b")),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_a_column_is_named_with_the_space_around_it_or_without(
    tmp_path: Path, written: list[str], meant: tuple[str, ...], kind: str
) -> None:
    names = ["a", " b", "c ", "d", " d"]
    path = tmp_path / f"x.{kind}"
    if kind == "jsonl":
        write_json_lines(path, [dict.fromkeys(names, "x")])
    elif kind == "parquet":
        pq.write_table(pa.table({name: ["x"] for name in names}), path)
    else:
        path.write_text({"csv": ";", "tsv": "\t"}[kind].join(names) + "\n", encoding="utf-8")
    (file,) = input_files(str(path))
    assert columns_of(file, format_of_all([file], written), written) == meant
