"""The script of the training Job: what it calls, and when it resumes."""

import os
import subprocess
from pathlib import Path
from typing import Any

from service.cli.main import build_parser
from service.cli.network import train
from support.manifests import (
    container_of,
    environment_of,
    of_kind,
    source,
)
from support.running_server import ROOT


def _run_job_script(tmp_path: Path, environment: dict[str, str]) -> list[str]:
    """The job's own script, with a `dragoman` that says how it was called."""
    [job] = of_kind(source("training"), "Job")
    recorder = tmp_path / "dragoman"
    recorder.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    recorder.chmod(0o755)
    container: dict[str, Any] = container_of(job)
    done = subprocess.run(
        [*container["command"], *container["args"]],
        env=environment | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout.split()


def test_the_training_job_resumes_what_has_a_state_and_only_that(tmp_path: Path) -> None:
    documents = source("training")
    [job] = of_kind(documents, "Job")
    environment = environment_of(documents, job)
    assert (ROOT / environment["EXPERIMENT"]).is_file()
    output = tmp_path / "run"
    output.mkdir()
    environment["OUTPUT"] = str(output)
    first = _run_job_script(tmp_path, environment)
    assert first[:2] == ["train", environment["EXPERIMENT"]]
    assert "--resume" not in first
    assert _run_job_script(tmp_path, environment | {"START_FROM": "a b"}) == [
        *first,
        "--start-from",
        "a",
        "b",  # one word to the command: lines are split here
    ]
    for name in ("state.pt", "state-previous.pt"):  # a kill between two saves leaves the latter
        (output / name).touch()
        assert _run_job_script(tmp_path, environment) == [*first, "--resume"]
        (output / name).unlink()


def test_what_the_training_job_calls_is_what_the_command_takes(tmp_path: Path) -> None:
    documents = source("training")
    [job] = of_kind(documents, "Job")
    environment = environment_of(documents, job)
    container = container_of(job)
    called = _run_job_script(tmp_path, environment)
    arguments = build_parser().parse_args(called)
    assert arguments.run is train.run
    assert arguments.experiment == Path(environment["EXPERIMENT"])
    assert arguments.output == Path(environment["OUTPUT"])
    assert arguments.threads == int(container["resources"]["requests"]["cpu"])
    is_read_only = {
        Path(each["mountPath"]): each.get("readOnly", False) for each in container["volumeMounts"]
    }
    assert is_read_only[arguments.data]
    assert is_read_only[arguments.output.parent] is False
    assert not arguments.resume
    assert build_parser().parse_args([*called, "--resume"]).resume
