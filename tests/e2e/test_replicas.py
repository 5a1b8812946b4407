"""A real server with two replicas: what dies or hangs under load costs no accepted request."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from model.system.cores import usable_cores
from support.running_server import (
    POLL_SECONDS,
    ROOT,
    RunningServer,
    running_server,
    starting_server,
)
from support.server_load import TEXTS, Replies, lasting_load, translate, wait_more

TWO = {
    "DRAGOMAN_REPLICAS": "2",
    "DRAGOMAN_HANG_SECONDS": "2",
    "DRAGOMAN_FILL_ROWS": "0",
    "DRAGOMAN_RESTART_WINDOW_SECONDS": "0.001",
}
needs_two_processors = pytest.mark.skipif(usable_cores() < 2, reason="there is one processor")


def _wait_replicas(client: httpx.Client, number: int) -> None:
    """Ask until so many are ready; pytest's timeout is the bound."""
    while client.get("/v1/health").json()["replicas"]["ready"] != number:
        time.sleep(POLL_SECONDS)


def _all_right(replies: Replies, right: dict[str, object]) -> None:
    assert {reply.status_code for _, reply in replies} == {200}
    assert all(reply.json() == right[text] for text, reply in replies)


@needs_two_processors
@pytest.mark.replicas
@pytest.mark.parametrize(("number", "reason"), [(signal.SIGKILL, "exit"), (signal.SIGSTOP, "hang")])
def test_a_replica_that_is_lost_under_load_costs_no_request(
    served_checkpoint: Path, tmp_path: Path, number: signal.Signals, reason: str
) -> None:
    with (
        running_server(served_checkpoint, tmp_path / "log.jsonl", **TWO) as server,
        server.client() as client,
    ):
        right = {text: translate(client, text).json() for text in TEXTS}
        _wait_replicas(client, 2)
        with lasting_load(server, 6) as replies:
            for place in (0, 1, 0):
                before = set(server.engine_ids())
                os.kill(sorted(before)[place], number)
                _wait_replicas(client, 1)
                assert client.get("/readyz").status_code == 200
                _wait_replicas(client, 2)
                assert len(before & set(server.engine_ids())) == 1
                wait_more(replies, 12)
        _all_right(replies, right)
        metrics = server.metrics()
        assert metrics[f"dragoman_engine_restarts_total{{reason={reason}}}"] == 3
        assert metrics["dragoman_pending_segments"] == 0
        assert metrics["dragoman_replica_up{replica=0}"] == 1
        assert metrics["dragoman_replica_up{replica=1}"] == 1


@needs_two_processors
@pytest.mark.replicas
def test_a_reload_under_load_replaces_both_and_costs_no_request(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    with running_server(served_checkpoint, log, **TWO) as server, server.client() as client:
        right = {text: translate(client, text).json() for text in TEXTS}
        _wait_replicas(client, 2)
        before = set(server.engine_ids())
        most = 0
        with lasting_load(server, 6) as replies:
            for number in (1, 2):
                server.signal(signal.SIGHUP)
                while log.read_text().count('"event": "reloaded"') < number:
                    most = max(most, len(server.engine_ids()))
                    time.sleep(POLL_SECONDS)
                assert client.get("/v1/health").json()["replicas"] == {"ready": 2, "of": 2}
                wait_more(replies, 12)
        _all_right(replies, right)
        while len(server.engine_ids()) > 2:
            time.sleep(POLL_SECONDS)
        assert not before & set(server.engine_ids())
        assert most <= 4


@needs_two_processors
def test_two_replicas_answer_as_one_does_on_a_processor_each(
    served_checkpoint: Path, server: RunningServer, tmp_path: Path
) -> None:
    with server.client() as client:
        right = {text: translate(client, text).json() for text in TEXTS}
        assert client.get("/v1/health").json()["replicas"] == {"ready": 1, "of": 1}
    with (
        running_server(served_checkpoint, tmp_path / "log.jsonl", **TWO) as both,
        both.client() as client,
    ):
        _wait_replicas(client, 2)
        with ThreadPoolExecutor(6) as threads:
            replies = list(zip(TEXTS, threads.map(translate, [client] * 12, TEXTS), strict=True))
        _all_right(replies, right)
        metrics = both.metrics()
        work = [metrics[f"dragoman_replica_row_steps_total{{replica={one}}}"] for one in (0, 1)]
        assert all(work)
        assert sum(work) == metrics["dragoman_step_rows_sum"]
        held = [os.sched_getaffinity(number) for number in both.engine_ids()]
        assert not held[0] & held[1]
        both.signal(signal.SIGTERM)
        assert both.wait() == 0


def test_more_replicas_than_processors_are_one_line_before_anything_starts(
    served_checkpoint: Path,
) -> None:
    command = [sys.executable, "-m", "service.cli.main", "serve", "--device", "cpu"]
    command += ["--port", "0", "--checkpoint", str(served_checkpoint), "--replicas", "200"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert re.search(r"DRAGOMAN_REPLICAS is 200; \d+ processors may be used here", line)


@needs_two_processors
@pytest.mark.replicas
def test_a_port_that_is_taken_is_told_before_any_replica_starts(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        flags = ("--port", str(port))
        with starting_server(served_checkpoint, log, *flags, **TWO) as server:
            assert server.wait() != 0
    assert f"cannot listen on 127.0.0.1 port {port}" in log.read_text()
    assert "engine" not in log.read_text()
