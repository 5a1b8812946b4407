"""An engine that dies or stops under load: nothing hangs or is mixed up, and it comes back."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from support.running_server import running_server
from support.server_load import TEXTS, lasting_load, translate, wait_status

EAGER = {"DRAGOMAN_HANG_SECONDS": "1", "DRAGOMAN_RESTART_WINDOW_SECONDS": "0.001"}


@pytest.mark.parametrize(("number", "reason"), [(signal.SIGKILL, "exit"), (signal.SIGSTOP, "hang")])
def test_an_engine_that_is_lost_under_load_is_replaced_and_no_answer_is_wrong(
    served_checkpoint: Path, tmp_path: Path, number: signal.Signals, reason: str
) -> None:
    with running_server(served_checkpoint, tmp_path / "log.jsonl", **EAGER) as server:
        with server.client() as client:
            right = {text: translate(client, text).json() for text in TEXTS}
            with lasting_load(server, 4) as replies:
                for _ in range(2):
                    (engine,) = server.engine_ids()
                    os.kill(engine, number)
                    refusal = wait_status(client, "/readyz", 503)
                    assert refusal.json()["code"] == "restarting"
                    assert client.get("/livez").status_code == 200
                    wait_status(client, "/readyz", 200)
                    assert translate(client, TEXTS[0]).json() == right[TEXTS[0]]
        refused = [reply for _, reply in replies if reply.status_code != 200]
        assert refused
        for reply in refused:
            assert reply.status_code == 503
            assert int(reply.headers["retry-after"]) > 0
        answered = [(text, reply) for text, reply in replies if reply.status_code == 200]
        assert all(reply.json() == right[text] for text, reply in answered)
        metrics = server.metrics()
        assert metrics[f"dragoman_engine_restarts_total{{reason={reason}}}"] == 2
        assert metrics["dragoman_engine_up"] == 1
        assert metrics["dragoman_pending_segments"] == 0


def test_an_engine_that_cannot_be_started_again_is_lost_until_a_reload_repairs_it(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "tiny"
    shutil.copytree(served_checkpoint, checkpoint)
    few = {"DRAGOMAN_MAX_RESTARTS": "1"}
    with (
        running_server(checkpoint, tmp_path / "log.jsonl", **few) as server,
        server.client() as client,
    ):
        right = translate(client, TEXTS[0]).json()
        (checkpoint / "model.safetensors").rename(tmp_path / "aside")
        (engine,) = server.engine_ids()
        os.kill(engine, signal.SIGKILL)
        assert wait_status(client, "/livez", 503).json()["code"] == "lost"
        assert translate(client, TEXTS[0]).json()["code"] == "lost"
        (tmp_path / "aside").rename(checkpoint / "model.safetensors")
        server.signal(signal.SIGHUP)
        wait_status(client, "/readyz", 200)
        assert translate(client, TEXTS[0]).json() == right


def test_an_engine_never_comes_back_with_other_weights_than_the_front_knows(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "tiny"
    shutil.copytree(served_checkpoint, checkpoint)
    few = {"DRAGOMAN_MAX_RESTARTS": "1"}
    log = tmp_path / "log.jsonl"
    with running_server(checkpoint, log, **few) as server:
        with (checkpoint / "checksums.sha256").open("a") as listing:
            listing.write("0" * 64 + "  other.txt\n")
        (engine,) = server.engine_ids()
        os.kill(engine, signal.SIGKILL)
        with server.client() as client:
            wait_status(client, "/livez", 503)
    assert "engine_restart_failed" in log.read_text()


def test_sigterm_while_the_engine_restarts_leaves_with_0(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    with running_server(served_checkpoint, tmp_path / "log.jsonl") as server:
        (engine,) = server.engine_ids()
        os.kill(engine, signal.SIGKILL)
        with server.client() as client:
            wait_status(client, "/readyz", 503)
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
