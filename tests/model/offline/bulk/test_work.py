"""Work on blocks: what is written, what is bad, and that no long row holds back other blocks."""

import errno
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from model.config import SearchConfig
from model.errors import CheckpointError, DataError
from model.offline.bulk import places
from model.offline.bulk.blocks import Receipt
from model.offline.bulk.job import Job
from model.offline.bulk.local_engine import run_here
from model.offline.bulk.output import BAD_ROWS, SUCCESS, OutputFolder
from model.offline.bulk.places import Place, place_of
from model.offline.bulk.ray_worker import BulkWorker, Failed, Started
from model.offline.bulk.task import Method, open_network
from model.offline.bulk.work import MAX_OPEN_BLOCKS, BlockWork
from model.text.constraints.control import Control
from model.text.constraints.glossary import Entry, Glossary
from support.bulk_jobs import (
    bad_rows_of,
    done_of,
    job_of,
    method_of,
    parts_of,
    rows_of,
    sentences,
    task_of,
    write_json_lines,
)
from support.object_store import register
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

TEXTS = sentences(22)


@pytest.fixture(scope="module")
def method(tmp_path_factory: pytest.TempPathFactory) -> Method:
    return method_of(
        write_tiny_checkpoint(tmp_path_factory.mktemp("work") / "tiny", pairs=(EN_ZH,))
    )


@pytest.fixture
def job(tmp_path: Path) -> Job:
    rows = [{"n": number, "text": text} for number, text in enumerate(TEXTS)]
    return job_of(str(write_json_lines(tmp_path / "in.jsonl", rows)), names=["text"])


def _done(job: Job, method: Method, output: str) -> list[Receipt]:
    """Do what is missing of a job, and end it."""
    folder = OutputFolder(output, writer="test")
    kept = folder.kept_job()
    assert kept in (None, job)
    with folder.begun(job):
        finished = {receipt.block for receipt in folder.finished(job)}
        missing = [block for block in job.blocks if block.number not in finished]
        receipts = list(run_here(task_of(job, output, method), missing, folder))
        folder.complete(job)
    return receipts


def test_rows_get_what_the_translator_says_in_order(
    job: Job, method: Method, tmp_path: Path
) -> None:
    receipts = _done(job, method, str(tmp_path / "out"))
    expected = open_network(method).translate(TEXTS, EN_ZH, method.search)
    assert rows_of(tmp_path / "out") == [
        {"n": number, "text": text, "text_zh": found.text}
        for number, (text, found) in enumerate(zip(TEXTS, expected, strict=True))
    ]
    assert sorted(receipt.block for receipt in receipts) == [0, 1, 2, 3, 4, 5]
    success = json.loads((tmp_path / "out" / SUCCESS).read_bytes())
    assert (success["rows"], success["blocks"], success["bad_rows"]) == (22, 6, 0)
    assert success["characters"] == sum(map(len, TEXTS))


@pytest.mark.parametrize("output", ["objects://bulk/out", "memory://bulk-work/out", "{}/out"])
def test_a_job_goes_on_where_it_stopped_and_does_broken_blocks_again(
    job: Job, method: Method, tmp_path: Path, output: str
) -> None:
    register()
    output = output.format(tmp_path)
    place, parts = place_of(output), [f"part-{block:06d}.jsonl" for block in range(4)]
    folder = OutputFolder(output, writer="test")
    with folder.begun(job):
        first = list(run_here(task_of(job, output, method), job.blocks[:4], folder))
    whole = {name: _read(place.joined(name)) for name in parts}
    _write(place.joined(parts[1]), b"{")
    _write(place.joined(parts[2]), whole[parts[2]][:-2] + b"!\n")
    _write(place.joined("_dragoman", "done", "000003.json"), b'{"block": 3')
    again = _done(job, method, output)
    assert sorted(receipt.block for receipt in first) == [0, 1, 2, 3]
    assert sorted(receipt.block for receipt in again) == [1, 2, 3, 4, 5]
    assert {name: _read(place.joined(name)) for name in parts} == whole
    assert _done(job, method, output) == []


def _read(place: Place) -> bytes:
    with place.opened() as stream:
        return stream.read()


def _write(place: Place, data: bytes) -> None:
    def content(stream: BinaryIO) -> None:
        stream.write(data)

    place.write(place_of(f"{place.name}.partial"), content)


def test_bad_cells_are_null_in_their_place_and_listed(method: Method, tmp_path: Path) -> None:
    rows: list[Any] = [{"text": text} for text in TEXTS[:9]]
    rows[1], rows[4] = {"text": None}, {"text": 4}
    rows[6], rows[8] = {"text": "x" * 501}, {"title": "x"}
    path = write_json_lines(tmp_path / "in.jsonl", rows)
    job = job_of(str(path), names=["text"], max_rows=3)
    _done(job, replace(method, max_characters=500), str(tmp_path / "out"))
    found = rows_of(tmp_path / "out")
    assert [{key: value for key, value in row.items() if key != "text_zh"} for row in found] == rows
    assert [number for number, row in enumerate(found, 1) if row["text_zh"] is None] == [2, 5, 7, 9]
    assert bad_rows_of(tmp_path / "out") == [
        (2, "null"), (5, "not a string"), (7, "501 characters; a text may have 500"),
        (9, "the row does not have the column"),
    ]  # fmt: skip
    success = json.loads((tmp_path / "out" / SUCCESS).read_bytes())
    assert success["bad_rows"] == 4
    assert success["bad_cells"]["too long"] == 1


def test_a_long_row_holds_back_its_own_block_alone(method: Method, tmp_path: Path) -> None:
    rows = [{"text": text} for text in TEXTS]
    rows[0] = {"text": " ".join(sentences(400))}
    path = write_json_lines(tmp_path / "in.jsonl", rows)
    job = job_of(str(path), names=["text"])
    folder = OutputFolder(str(tmp_path / "out"), writer="test")
    with folder.begun(job):
        task = task_of(job, folder.name, replace(method, max_rows=4, max_characters=100_000))
        order = [receipt.block for receipt in run_here(task, job.blocks, folder)]
    assert order[-1] == 0
    assert sorted(order) == [0, 1, 2, 3, 4, 5]


def test_only_so_many_blocks_are_open(job: Job, method: Method, tmp_path: Path) -> None:
    folder = OutputFolder(str(tmp_path / "out"), writer="test")
    with folder.begun(job):
        work = BlockWork(open_network(method), task_of(job, folder.name, method), folder)
        assert work.is_idle
        for block in job.blocks[:MAX_OPEN_BLOCKS]:
            assert work.has_room
            work.begin(block)
        assert not work.has_room
        work.close()


def test_a_full_disk_ends_the_job_and_keeps_what_is_finished(
    job: Job, method: Method, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, flushed = places.os.fsync, []

    def fsync(descriptor: int) -> None:
        flushed.append(descriptor)
        if len(flushed) == 12:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(places.os, "fsync", fsync)
    with pytest.raises(DataError, match=r"out.*: No space left on device"):
        _done(job, method, str(tmp_path / "out"))
    kept = done_of(tmp_path / "out")
    assert 0 < len(kept) < 6
    assert list((tmp_path / "out" / "_dragoman" / "writing").iterdir()) == []
    assert len(_done(job, method, str(tmp_path / "out"))) == 6 - len(kept)


def test_a_file_that_changes_meanwhile_is_refused(job: Job, method: Method, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(path.read_bytes() + b"{}\n")
    with pytest.raises(DataError, match=r"in\.jsonl: was changed since the job began"):
        _done(job, method, str(tmp_path / "out"))
    assert done_of(tmp_path / "out") == set()


def test_another_checkpoint_than_the_jobs_is_refused(method: Method) -> None:
    with pytest.raises(CheckpointError, match="is another checkpoint here"):
        open_network(replace(method, fingerprint="0" * 64))


def test_terms_and_beginnings_hold_as_everywhere(job: Job, method: Method, tmp_path: Path) -> None:
    glossary = Glossary([Entry(source="river", target="Fluss")])
    method = replace(method, control=Control(target_prefix="Also", glossary=glossary))
    _done(job, method, str(tmp_path / "out"))
    expected = open_network(method).translate(TEXTS, EN_ZH, method.search, control=method.control)
    assert [row["text_zh"] for row in rows_of(tmp_path / "out")] == [one.text for one in expected]
    assert all(one.text.startswith("Also") for one in expected)


def test_facts_name_everything_that_the_output_depends_on(method: Method) -> None:
    changes: dict[str, Any] = {
        "fingerprint": "1" * 64,
        "compute_type": "bfloat16",
        "with_shortlist": True,
        "search": SearchConfig(beam_size=3),
        "control": Control(target_prefix="x"),
        "max_characters": 9,
    }
    for name, value in changes.items():
        assert replace(method, **{name: value}).facts != method.facts
    for name in ("num_threads", "max_rows"):
        assert replace(method, **{name: 64}).facts == method.facts


def test_other_folders_are_never_written(job: Job, method: Method, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine", encoding="utf-8")
    for name, problem in (("out", "is there and holds no bulk job"), ("in.jsonl", "is a file")):
        with pytest.raises(DataError, match=problem):
            OutputFolder(str(tmp_path / name), writer="test").kept_job()
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]


def test_two_commands_do_not_write_one_folder(job: Job, method: Method, tmp_path: Path) -> None:
    first = OutputFolder(str(tmp_path / "out"), writer="one")
    with first.begun(job):
        second = OutputFolder(str(tmp_path / "out"), writer="two")
        with pytest.raises(DataError, match="another command is writing there"), second.begun(job):
            pass


def test_a_worker_of_a_cluster_does_blocks_that_are_handed_over_together(
    job: Job, method: Method, tmp_path: Path
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    output = str(tmp_path / "out")
    folder = OutputFolder(output, writer="test")
    with folder.begun(job), ThreadPoolExecutor(MAX_OPEN_BLOCKS) as calls:
        worker = BulkWorker()
        assert isinstance(worker.start(task_of(job, output, method)), Started)
        receipts = list(calls.map(worker.do, job.blocks))
        assert all(isinstance(receipt, Receipt) for receipt in receipts)
        folder.complete(job)
    _done(job, method, str(tmp_path / "here"))
    for name in (BAD_ROWS, SUCCESS):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    assert parts_of(tmp_path / "out") == parts_of(tmp_path / "here")


def test_a_worker_says_what_ends_the_job_as_a_value(
    job: Job, method: Method, tmp_path: Path
) -> None:
    output = str(tmp_path / "out")
    wrong = replace(method, fingerprint="0" * 64)
    answer = BulkWorker().start(task_of(job, output, wrong))
    assert isinstance(answer, Failed)
    assert "is another checkpoint here" in answer.message
    worker = BulkWorker()
    worker.start(task_of(job, output, method))
    (tmp_path / "in.jsonl").unlink()
    failed = worker.do(job.blocks[0])
    assert isinstance(failed, Failed)
    assert "No such file or directory" in failed.message
