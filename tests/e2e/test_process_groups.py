"""Signals to every process of the server at once, as service managers send them."""

import os
import select
import signal
import time
from pathlib import Path

import pytest

from support.running_server import POLL_SECONDS, RunningServer, running_server, starting_server
from support.server_load import SLOW, accepted_work

NUM_CLIENTS = 2


def _signal_all(server: RunningServer, number: signal.Signals) -> None:
    """To the front first and then to its children, as systemd does."""
    engines = server.engine_ids()
    server.signal(number)
    for engine in engines:
        os.kill(engine, number)


def test_sigterm_to_all_processes_finishes_what_was_accepted_and_leaves_with_0(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    with running_server(served_checkpoint, log, **SLOW) as server:
        with accepted_work(server, NUM_CLIENTS) as replies:
            _signal_all(server, signal.SIGTERM)
            assert not all(reply.done() for reply in replies)
        assert [reply.result().status_code for reply in replies] == [200] * NUM_CLIENTS
        assert server.wait() == 0
    assert "engine_lost" not in log.read_text()


def test_sighup_to_all_processes_is_a_reload_and_loses_nothing(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    with running_server(served_checkpoint, log, **SLOW) as server:
        with accepted_work(server, NUM_CLIENTS) as replies:
            _signal_all(server, signal.SIGHUP)
        assert [reply.result().status_code for reply in replies] == [200] * NUM_CLIENTS
        while '"event": "reloaded"' not in log.read_text():
            time.sleep(POLL_SECONDS)
    assert "engine_lost" not in log.read_text()


@pytest.mark.parametrize("has_begun", [False, True])
def test_sigterm_to_all_processes_while_booting_leaves_with_0(
    served_checkpoint: Path, tmp_path: Path, has_begun: bool
) -> None:
    log = tmp_path / "log.jsonl"
    with starting_server(served_checkpoint, log) as server:
        server.wait_listening()
        while not (engines := server.engine_ids()):
            time.sleep(POLL_SECONDS)
        while has_begun and "service.engine" not in Path(f"/proc/{engines[0]}/cmdline").read_text():
            time.sleep(POLL_SECONDS)
        _signal_all(server, signal.SIGTERM)
        assert server.wait() == 0
    assert "start_failed" not in log.read_text()


@pytest.mark.parametrize("stopped", ["front", "engine"])
def test_a_server_that_is_killed_leaves_no_engine_whoever_was_stopped(
    served_checkpoint: Path, tmp_path: Path, stopped: str
) -> None:
    with running_server(served_checkpoint, tmp_path / "log.jsonl", **SLOW) as server:
        (engine_id,) = server.engine_ids()
        engine = os.pidfd_open(engine_id)
        try:
            with accepted_work(server, NUM_CLIENTS) as replies:
                os.kill({"front": server.process.pid, "engine": engine_id}[stopped], signal.SIGSTOP)
                server.process.kill()
            assert all(reply.exception() for reply in replies)
            has_left, _, _ = select.select([engine], [], [], 30)
            assert has_left
        finally:
            signal.pidfd_send_signal(engine, signal.SIGCONT) if not has_left else None
            os.close(engine)
