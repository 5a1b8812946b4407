"""`dragoman translate INPUT OUTPUT`: the words that lines get, resumed, and one clear error."""

import json
import os
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from model.errors import CheckpointError
from model.offline.bulk import local_engine
from model.offline.bulk.task import Method
from model.offline.translator import Translator
from service.cli.main import main
from service.cli.translate import bulk
from support.bulk_jobs import (
    bad_rows_of,
    begun_command,
    done_of,
    parts_of,
    sentences,
    told_blocks,
    write_json_lines,
)
from support.object_store import ObjectStore, register
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

TEXTS = sentences(23)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("cli") / "tiny", pairs=(EN_ZH,))


@pytest.fixture(scope="module")
def lines(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the command says of the same texts line by line."""
    folder = tmp_path_factory.mktemp("lines")
    source = folder / "source.txt"
    source.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    flags = ["--checkpoint", str(checkpoint), "--beam-size", "2", "--prefix", "So"]
    assert main(["translate", str(source), "--output", str(folder / "out.txt"), *flags]) == 0
    return (folder / "out.txt").read_text(encoding="utf-8").splitlines()


def _bulk(source: Path, folder: Path, checkpoint: Path, *more: str) -> list[str]:
    return [
        "translate", str(source), str(folder), "--checkpoint", str(checkpoint), "--beam-size", "2",
        "--block-rows", "4", "--prefix", "So", *more,
    ]  # fmt: skip


def _table(path: Path) -> list[str]:
    """Write the texts as a table of the format that a name has; flags of its columns."""
    if path.suffix == ".txt":
        path.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
        return []
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"text": TEXTS, "n": range(len(TEXTS))}), path, row_group_size=9)
    elif path.suffix == ".jsonl":
        write_json_lines(path, [{"text": text} for text in TEXTS])
    else:
        rows = "".join(f'{number},"{text}"\n' for number, text in enumerate(TEXTS))
        path.write_text(f"n,text\n{rows}", encoding="utf-8")
    return ["--columns", "text"]


def _translations(folder: Path) -> list[str]:
    found: list[str] = []
    for part in sorted(folder.glob("part-*")):
        if part.suffix == ".parquet":
            found += pq.read_table(part)["text_zh-Hans"].to_pylist()
        elif part.suffix == ".jsonl":
            rows = part.read_text(encoding="utf-8").splitlines()
            found += [json.loads(row)["text_zh-Hans"] for row in rows]
        elif part.suffix == ".csv":
            rows = part.read_text(encoding="utf-8").splitlines()[1:]
            found += [row.partition('",')[2].strip('"') for row in rows]
        else:
            found += part.read_text(encoding="utf-8").splitlines()
    return found


@pytest.mark.parametrize("name", ["a.txt", "a.parquet", "a.jsonl", "a.csv"])
def test_every_format_gets_the_words_that_lines_get(
    checkpoint: Path, lines: list[str], tmp_path: Path, name: str,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    flags = _table(tmp_path / name)
    assert main(_bulk(tmp_path / name, tmp_path / "out", checkpoint, *flags)) == 0
    assert _translations(tmp_path / "out") == [line.replace('"', '""') for line in lines]
    assert "23 rows in 6 blocks are in" in capfd.readouterr().err or name == "a.parquet"
    assert main(_bulk(tmp_path / name, tmp_path / "out", checkpoint, *flags)) == 0
    assert "blocks are finished already" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl", "a.csv"])
def test_tables_of_a_store_are_translated_into_it(
    checkpoint: Path, lines: list[str], tmp_path: Path, name: str
) -> None:
    register()
    flags = _table(tmp_path / name)
    ObjectStore.objects[f"bucket/in/{name}"] = (tmp_path / name).read_bytes()
    arguments = [
        "translate", "objects://bucket/in", "objects://bucket/out", "--checkpoint", str(checkpoint),
        "--beam-size", "2", "--block-rows", "4", "--prefix", "So", *flags,
    ]  # fmt: skip
    try:
        assert main(arguments) == 0
        del ObjectStore.objects["bucket/out/_dragoman/done/000001.json"]
        assert main(arguments) == 0
        assert "bucket/out/_SUCCESS" in ObjectStore.objects
        for path, data in ObjectStore.objects.items():
            if path.startswith("bucket/out/part-"):
                (tmp_path / path.rpartition("/")[2]).write_bytes(data)
    finally:
        ObjectStore.objects.clear()
    assert _translations(tmp_path) == [line.replace('"', '""') for line in lines]


def test_a_url_that_is_a_pattern_gets_no_translations(
    checkpoint: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    register()
    flags = [*_table(tmp_path / "a.jsonl"), "--checkpoint", str(checkpoint)]
    name = "objects://bucket/out[1]"
    try:
        assert main(["translate", str(tmp_path / "a.jsonl"), name, *flags]) == 1
        assert ObjectStore.objects == {}
    finally:
        ObjectStore.objects.clear()
    assert f"{name}: has one of * ? [" in capfd.readouterr().err


def test_a_folder_of_files_is_one_job_in_order(
    checkpoint: Path, lines: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number, start in enumerate(range(0, len(TEXTS), 10)):
        rows = [{"text": text} for text in TEXTS[start : start + 10]]
        write_json_lines(folder / f"{number}.jsonl", rows)
    flags = ["--columns", "text", "--suffix", "_zh-Hans", "--engine", "local"]
    assert main(_bulk(folder, folder / "out", checkpoint, *flags)) == 0
    assert _translations(folder / "out") == lines


def test_commands_that_are_killed_again_and_again_lose_nothing(
    checkpoint: Path, lines: list[str], tmp_path: Path
) -> None:
    flags = _table(tmp_path / "a.jsonl")
    arguments = _bulk(tmp_path / "a.jsonl", tmp_path / "out", checkpoint, *flags)[1:]
    done: set[str] = set()
    for _ in range(2):
        with begun_command(*arguments) as process:
            assert told_blocks(process, 1) == 1
            process.send_signal(signal.SIGKILL)
        assert done_of(tmp_path / "out") >= done
        done = done_of(tmp_path / "out")
        assert done
    assert main(["translate", *arguments]) == 0
    assert _translations(tmp_path / "out") == lines


def test_what_turns_out_not_to_be_done_is_no_success_meanwhile(
    checkpoint: Path, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = _bulk(
        tmp_path / "a.jsonl", tmp_path / "out", checkpoint, *_table(tmp_path / "a.jsonl")
    )
    assert main(arguments) == 0
    (tmp_path / "out" / "part-000002.jsonl").write_bytes(b"half")
    with monkeypatch.context() as patched:
        patched.setattr(local_engine, "open_network", _no_network)
        assert main(arguments) == 1
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    assert main(arguments) == 0
    assert (tmp_path / "out" / "_SUCCESS").exists()
    assert _translations(tmp_path / "out") == lines


def _no_network(method: Method) -> Translator:
    raise CheckpointError(method.checkpoint, "is gone")


def test_a_column_of_a_header_with_spaces_is_translated(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n, text\n1,A cat.\n", encoding="utf-8")
    assert main(_bulk(tmp_path / "a.csv", tmp_path / "out", checkpoint, "--columns", "text")) == 0
    assert parts_of(tmp_path / "out").startswith(b"n, text, text_zh-Hans\n1,A cat.,")


def test_paths_mean_the_same_from_everywhere(
    checkpoint: Path, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = _table(tmp_path / "a.jsonl")
    monkeypatch.chdir(tmp_path)
    assert main(_bulk(Path("a.jsonl"), Path("out"), checkpoint, *flags)) == 0
    assert main(_bulk(Path("./a.jsonl"), tmp_path / "out", checkpoint, *flags)) == 0
    assert _translations(tmp_path / "out") == lines


def test_an_interrupted_command_says_how_to_go_on(checkpoint: Path, tmp_path: Path) -> None:
    rows = [{"text": text} for text in sentences(2_000)]
    write_json_lines(tmp_path / "a.jsonl", rows)
    arguments = _bulk(tmp_path / "a.jsonl", tmp_path / "out", checkpoint, "--columns", "text")[1:]
    with begun_command(*arguments, environment={"BULK_IS_HELD": "1"}) as process:
        assert told_blocks(process, 1) == 1
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        told = process.stderr.read()
        assert process.wait(60) == 130
    assert "interrupted; " in told
    assert "the same command goes on from there" in told


def test_bad_rows_are_counted_and_listed(
    checkpoint: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [{"text": "A cat."}, {"text": None}, {"text": "x" * 99}]
    write_json_lines(tmp_path / "a.jsonl", rows)
    flags = ["--columns", "text", "--max-characters", "90"]
    status = main(_bulk(tmp_path / "a.jsonl", tmp_path / "out", checkpoint, *flags))
    assert status == bulk.BAD_ROWS_STATUS
    assert "2 rows have no translation, listed in" in capfd.readouterr().err
    assert [row for row, _ in bad_rows_of(tmp_path / "out")] == [2, 3]


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--columns", "title"], "a.jsonl: has no column 'title'; row 1 has 'text'"),
        (["--columns", "text,text"], "--columns names 'text' 2 times"),
        (["--columns", "text, text"], "--columns names 'text' 2 times"),
        (["--columns", " "], "--columns is ' '; it names columns, with commas"),
        (["--engine", "local"], "a.jsonl: which columns? --columns names them"),
        (["--columns", "text", "--suffix", ""], "new columns would have the old ones' names"),
        (["--columns", "text", "--workers", "2"], "--workers goes with --engine ray"),
        (["--columns", "text", "--hang-seconds", "9"], "--hang-seconds goes with --engine ray"),
        (
            ["--columns", "text", "--engine", "ray", "--hang-seconds", "-1"],
            "--hang-seconds is -1; it must be from 0, which is never, to 1000000",
        ),
        (["--columns", "text", "--block-rows", "0"], "--block-rows is 0; it must be from 1 to"),
        (["--columns", "text", "--output", "x"], "--output does not go with a bulk job"),
        (["--columns", "text", "--from", "zh", "--to", "zh"], "there is nothing to translate"),
    ],
)
def test_what_cannot_be_done_is_one_error_and_nothing_is_written(
    checkpoint: Path, tmp_path: Path, flags: list[str], problem: str,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    _table(tmp_path / "a.jsonl")
    assert main(_bulk(tmp_path / "a.jsonl", tmp_path / "out", checkpoint, *flags)) == 1
    told = capfd.readouterr().err
    assert problem in told
    assert told.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_another_job_in_the_folder_is_named_by_what_differs(
    checkpoint: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flags = _table(tmp_path / "a.jsonl")
    assert main(_bulk(tmp_path / "a.jsonl", tmp_path / "out", checkpoint, *flags)) == 0
    before = parts_of(tmp_path / "out")
    capfd.readouterr()
    for more, problem in (
        (["--beam-size", "3"], "out: holds another job: beam size is 2 there and 3 here"),
        (["--suffix", "_x"], "new columns is ['text_zh-Hans'] there and ['text_x'] here"),
        (["--top-k", "5"], "sampling is None there and"),
        (["--beam-groups", "2"], "beam groups is None there and 2 here"),
        (["--no-repeat-ngram", "3"], "no repeat n-gram is None there and 3 here"),
    ):
        arguments = _bulk(tmp_path / "a.jsonl", tmp_path / "out", checkpoint, *flags, *more)
        assert main(arguments) == 1
        assert problem in capfd.readouterr().err
    assert parts_of(tmp_path / "out") == before


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["A cat.", "--columns", "text"], "a bulk job needs INPUT, a file or a folder, and an"),
        (["-", "out"], "a bulk job needs INPUT, a file or a folder, and an OUTPUT folder"),
        (["Good", "morning"], "Good: no such file or folder"),
        (["A cat.", "--suffix", "_x"], "--suffix goes with a bulk job: give INPUT and an OUTPUT"),
    ],
)
def test_a_job_without_its_input_or_its_output_is_named(
    arguments: list[str], problem: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["translate", *arguments]) == 1
    assert problem in capfd.readouterr().err


def test_a_document_is_told_of_the_flag_that_it_needs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.html", "a.json.gz"):
        (tmp_path / name).write_text("<p>A cat.</p>")
        assert main(["translate", str(tmp_path / name), str(tmp_path / "new")]) == 1
        told = capfd.readouterr().err
        assert f"{name}: " in told
        assert told.endswith("; for one document: --output FILE, and no OUTPUT\n")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.jsonl"])
def test_a_new_folder_is_not_named_like_a_file_of_the_input(
    checkpoint: Path, tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    flags = _table(tmp_path / name)
    output = tmp_path / f"new{Path(name).suffix}"
    assert main(_bulk(tmp_path / name, output, checkpoint, *flags)) == 1
    told = capfd.readouterr().err
    assert f"OUTPUT {output} is named like a {Path(name).suffix[1:]} file" in told
    assert (f"for one document: --output {output}," in told) == (name != "a.jsonl")
    assert not output.exists()
    command = _bulk(tmp_path / name, output, checkpoint, *flags)
    command[2] += "/"
    assert main(command) == 0
    assert main(_bulk(tmp_path / name, output, checkpoint, *flags)) == 0, "the job's own folder"


def test_folders_of_parquet_are_named_so_by_custom(checkpoint: Path, tmp_path: Path) -> None:
    flags = _table(tmp_path / "a.parquet")
    assert main(_bulk(tmp_path / "a.parquet", tmp_path / "new.parquet", checkpoint, *flags)) == 0


def test_where_ray_is_missing_the_extra_is_named(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"):
        monkeypatch.setenv(name, os.environ.get(name, "0"))  # as the command leaves them
    flags = [*_table(tmp_path / "a.jsonl"), "--engine", "ray"]
    assert main(_bulk(tmp_path / "a.jsonl", tmp_path / "out", checkpoint, *flags)) == 1
    assert "pip install 'dragoman[ray]'" in capfd.readouterr().err
