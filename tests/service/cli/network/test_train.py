import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from model.system import devices
from model.train.loop.distributed import FirstWorkerError
from service.cli.main import main
from support.running_server import POLL_SECONDS
from support.tiny_checkpoint import generated_pairs
from support.tiny_runs import undrawn

EXPERIMENT = """
name: tiny
licence: CC0-1.0
data:
  folder: en-zh
  source_language: en
  target_language: zh
  train: [{name: talk, licence: CC0-1.0}]
  dev: [talk]
vocabulary: {size: 450}
network: {d_model: 16, num_heads: 2, d_ff: 16, num_encoder_layers: 1, num_decoder_layers: 1}
run:
  max_updates: %d
  batch_tokens: 200
  score_dev: false
  final_beam_size: 1
  log_every_updates: 1
  snapshot_every_updates: 100000
"""


@pytest.fixture(autouse=True)
def no_curves() -> Iterator[None]:
    with undrawn():
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split in ("train", "dev"):
        (tmp_path / "data" / "en-zh" / split).mkdir(parents=True)
        for language, side in (("en", 0), ("zh", 1)):
            lines = "".join(f"{pair[side]}\n" for pair in generated_pairs(60))
            path = tmp_path / "data" / "en-zh" / split / f"talk.{language}"
            path.write_text(lines, encoding="utf-8")
    (tmp_path / "tiny.yaml").write_text(EXPERIMENT % 3, encoding="utf-8")
    return tmp_path


def words_of(folder: Path) -> tuple[str, ...]:
    """What follows `dragoman train`."""
    folders = ("--data", str(folder / "data"), "--output", str(folder / "run"))
    return (str(folder / "tiny.yaml"), *folders)


@contextmanager
def training(*words: str) -> Iterator[tuple[subprocess.Popen[str], TextIO]]:
    """`dragoman train` in a process of its own, and what it says: JSON, as that is no terminal."""
    command = [sys.executable, "-m", "service.cli.main", "train", *words]
    root = Path(__file__).parents[4]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, cwd=root, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        yield process, process.stderr


def test_training_prints_where_the_checkpoint_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DRAGOMAN_DATA", str(folder / "data"))
    assert main(["train", "tiny.yaml", "--device", "cpu"]) == 0
    checkpoint = Path(capsys.readouterr().out.strip())
    assert checkpoint == Path("runs/tiny/checkpoint")
    card = (checkpoint / "card.md").read_text(encoding="utf-8")
    assert "dragoman train tiny.yaml --device cpu" in card


def test_foreseen_errors_are_one_event_where_there_is_no_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DRAGOMAN_DATA", raising=False)
    monkeypatch.chdir(folder)
    experiment = str(folder / "tiny.yaml")
    data = ["--data", str(folder / "data")]
    for arguments, message in (
        (["none.yaml"], "none.yaml: No such file or directory"),
        ([experiment], "no data folder; give --data, or set DRAGOMAN_DATA"),
        ([experiment, "--data", "nowhere"], "nowhere: the data folder is not a directory"),
        ([experiment, "--data", "a" * 300], f"{'a' * 300}: File name too long"),
        ([experiment, *data, "--output", "a" * 300], "cannot be used: File name too long"),
        ([experiment, *data, "--start-from", "a" * 300], f"{'a' * 300}: File name too long"),
        ([experiment, *data, "--cache", "a" * 300], f"{'a' * 300}: File name too long"),
        ([experiment, *data, "--cache", experiment], "tiny.yaml: is not a directory, so text"),
        (["a" * 300], f"{'a' * 300}: File name too long"),
        ([experiment, "--threads", "0"], "--threads is 0; it must be from 1 to 1024"),
        ([experiment, "--threads", "20000"], "--threads is 20000; it must be from 1 to 1024"),
        (
            [experiment, "--data", str(folder / "data"), "--output", str(folder), "--resume"],
            "no state to resume from",
        ),
    ):
        assert main(["train", *arguments]) == 1
        event = json.loads(capsys.readouterr().err.splitlines()[-1])
        assert (event["event"], event["level"]) == ("error", "error")
        assert message in event["text"]


def test_the_experiment_is_not_written_over_by_the_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = folder / "run" / "experiment.yaml"
    experiment.parent.mkdir()
    experiment.write_text("# why it is so\n" + EXPERIMENT % 3)
    before = experiment.read_bytes()
    words = [str(experiment), *words_of(folder)[1:], "--device", "cpu"]
    assert main(["train", *words]) == 1
    assert "experiment.yaml: is a file that this command reads" in capsys.readouterr().err
    assert experiment.read_bytes() == before
    experiment.write_text(EXPERIMENT % 3)
    other = folder / "mine.yaml"
    experiment.rename(other)
    assert main(["train", str(other), *words[1:]]) == 0
    assert main(["train", *words, "--resume"]) == 0  # what a run has written may be named


def test_an_error_of_the_text_names_the_line_that_asks_for_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = folder / "tiny.yaml"
    text = experiment.read_text(encoding="utf-8").replace("dev: [talk]", "dev: [none]")
    experiment.write_text(text, encoding="utf-8")
    flags = ["--data", str(folder / "data"), "--output", str(folder / "run"), "--device", "cpu"]
    assert main(["train", str(experiment), *flags]) == 1
    (error,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert error["text"].startswith(f"{experiment}:9: data.dev[0]: {folder}/data/en-zh/dev/none")


def test_attention_is_left_to_kernels_that_plan_nothing_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(devices, "use_unplanned_attention", asked.append)
    assert main(["train", str(tmp_path / "nowhere.yaml"), "--device", "cpu"]) != 0
    assert list(map(str, asked)) == ["cpu"]


def test_a_terminal_gets_lines_for_people(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["train", "none.yaml", "--device", "cpu"]) == 1
    assert capsys.readouterr().err == "dragoman: none.yaml: No such file or directory\n"
    monkeypatch.setattr("model.train.run.train", lambda *_, **__: False)
    flags = ["--data", str(folder / "data"), "--output", str(folder / "run"), "--device", "cpu"]
    assert main(["train", str(folder / "tiny.yaml"), *flags]) == 130
    told = f"stopped before there is a state in {folder}/run; go on with the same command\n"
    assert capsys.readouterr().err == told


def test_a_warning_of_a_library_is_an_event_too() -> None:
    code = (
        "import sys, warnings; from service.cli.network import train;"
        " train._configure_logging(sys.stderr); warnings.warn('odd')"
    )
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=True)
    (event,) = map(json.loads, done.stderr.splitlines())
    assert event["level"] == "warning"
    assert "UserWarning: odd" in event["text"]


def test_what_a_library_logs_is_a_note_with_its_text_beside_its_fields() -> None:
    code = (
        "import logging, sys; from service.cli.network import train;"
        "train._configure_logging(sys.stderr);"
        "logging.warning('slow: %s', 'rope', extra={'fields': {'checkpoint': 'tiny'}})"
    )
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=True)
    event = json.loads(done.stderr)
    assert (event["event"], event["text"], event["checkpoint"]) == ("note", "slow: rope", "tiny")


def test_a_worker_leaves_the_error_to_the_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> bool:
        raise FirstWorkerError

    monkeypatch.setattr("model.train.run.train", fail)
    flags = ["--data", str(folder / "data"), "--device", "cpu"]
    assert main(["train", str(folder / "tiny.yaml"), *flags]) == 0  # torchrun then blames the first
    assert capsys.readouterr().err == ""


def test_a_killed_run_goes_on_with_one_record_an_update(folder: Path) -> None:
    endless = (EXPERIMENT % 1_000_000).replace("run:", "run:\n  save_every_minutes: 0.00001")
    (folder / "tiny.yaml").write_text(endless, encoding="utf-8")
    with training(*words_of(folder)) as (process, stderr):
        events = map(json.loads, stderr)
        next(event for event in events if event.get("update", 0) >= 3)
        process.kill()
        stderr.read()
    journal = folder / "run" / "metrics.jsonl"
    last = json.loads(journal.read_bytes().splitlines(keepends=True)[-2])["update"] + 5
    (folder / "tiny.yaml").write_text(EXPERIMENT % last, encoding="utf-8")
    assert main(["train", *words_of(folder), "--resume"]) == 0
    records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    updates = [record["update"] for record in records if record["event"] == "progress"]
    assert updates == list(range(1, last + 1))
    assert [record["event"] for record in records].count("start") == 2


def test_the_card_of_a_run_killed_before_its_first_update_says_how_it_began(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Kill(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Kill

    experiment, *flags = words_of(folder)
    assert main(["train", experiment, *flags]) == 0
    flags[-1] = str(folder / "again")
    with monkeypatch.context() as patch:
        patch.setattr("model.train.loop.trainer.Trainer.train", die)
        with pytest.raises(Kill):
            main(["train", experiment, *flags, "--start-from", str(folder / "run")])
    assert main(["train", experiment, *flags, "--resume"]) == 0
    card = (folder / "again" / "checkpoint" / "card.md").read_text(encoding="utf-8")
    assert "\ndragoman train tiny.yaml --start-from run\n" in card


def test_an_experiment_may_have_a_name_that_is_no_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So has the folder of its run, unless another one is named."""
    monkeypatch.chdir(folder)
    name = os.fsdecode(b"od\xe9")
    words = ["train", f"{name}.yaml", "--data", "data", "--device", "cpu"]
    (folder / "tiny.yaml").rename(folder / f"{name}.yaml")
    assert main(words) == 0
    assert capsys.readouterr().out == "runs/od?/checkpoint\n"
    output = Path("runs") / name
    card = (output / "checkpoint" / "card.md").read_text(encoding="utf-8")
    assert "\ndragoman train od?.yaml --device cpu\n" in card
    assert main([*words, "--resume"]) == 0
    for start in (output, output / "checkpoint"):
        again = Path("runs") / f"{start.name}-{name}"
        assert main([*words, "--start-from", str(start), "--output", str(again)]) == 0
        assert (again / "checkpoint" / "card.md").is_file()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_the_state_and_the_run_can_be_resumed(
    folder: Path, number: signal.Signals
) -> None:
    (folder / "tiny.yaml").write_text(EXPERIMENT % 1_000_000, encoding="utf-8")
    with training(*words_of(folder), "--threads", "1") as (process, stderr):
        deadline = time.monotonic() + 120
        for line in stderr:
            event = json.loads(line)
            if (event["event"], event.get("update")) == ("progress", 1):
                break
            assert time.monotonic() < deadline
        process.send_signal(number)
        *_, last = map(json.loads, stderr)
        assert process.wait(timeout=60) == 130
    assert (last["event"], last["level"]) == ("stopped", "info")
    assert last["text"] == f"stopped; go on with --resume (the state is in {folder}/run)"
    assert (folder / "run" / "state.pt").is_file()
    assert not (folder / "run" / "checkpoint").exists()
    (folder / "tiny.yaml").write_text(EXPERIMENT % 2, encoding="utf-8")
    assert main(["train", *words_of(folder), "--resume"]) == 0
    card = (folder / "run" / "checkpoint" / "card.md").read_text(encoding="utf-8")
    assert "\ndragoman train tiny.yaml --threads 1\n" in card  # as it was begun
    report = (folder / "run" / "report.md").read_text(encoding="utf-8")
    assert "`dragoman train tiny.yaml`" in report
    assert str(folder) not in report


def write_training_text(folder: Path, *, times: int) -> None:
    for language, side in (("en", 0), ("zh", 1)):
        lines = "".join(f"{pair[side]}\n" for pair in generated_pairs(60))
        path = folder / "data" / "en-zh" / "train" / f"talk.{language}"
        path.write_text(lines * times, encoding="utf-8")


def test_a_signal_ends_the_preparation_of_text_and_the_same_command_goes_on(folder: Path) -> None:
    text = (EXPERIMENT % 2).replace("{size: 450}", "{size: 450, max_lines: 997}")
    (folder / "tiny.yaml").write_text(text, encoding="utf-8")
    write_training_text(folder, times=3_000)  # tokenising it takes many seconds
    with training(*words_of(folder)) as (process, stderr):
        deadline = time.monotonic() + 120
        while not list(folder.glob("run/text/*.partial-*")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(POLL_SECONDS)
        process.terminate()
        warning, event = map(json.loads, stderr)
        assert process.wait(timeout=60) == 130
    assert warning["event"] == "held_out_text_in_training"  # the small text has one for both
    assert event["event"] == "stopped"
    assert event["text"].endswith("; go on with the same command")
    assert not list(folder.glob("run/text/*"))  # neither finished nor begun
    assert not (folder / "run" / "state.pt").exists()
    write_training_text(folder, times=1)
    assert main(["train", *words_of(folder)]) == 0
