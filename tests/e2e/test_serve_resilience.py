"""An engine that dies or stops under load: nothing hangs or is mixed up, and it comes back."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from support.running_server import POLL_SECONDS, RunningServer, running_server

TEXTS = [f"The cat number {number} sees the river." for number in range(12)]
EAGER = {"DRAGOMAN_HANG_SECONDS": "1", "DRAGOMAN_RESTART_WINDOW_SECONDS": "0.001"}


def _translate(client: httpx.Client, text: str) -> httpx.Response:
    return client.post("/translate", json={"q": text, "source": "en", "target": "zh"})


def _wait_status(client: httpx.Client, path: str, status: int) -> httpx.Response:
    """Ask until it is answered so; pytest's timeout is the bound."""
    while (reply := client.get(path)).status_code != status:
        time.sleep(POLL_SECONDS)
    return reply


@contextmanager
def _load(server: RunningServer, num_clients: int) -> Iterator[list[tuple[str, httpx.Response]]]:
    """Clients that translate as long as the block lasts; what they were answered."""
    replies: list[tuple[str, httpx.Response]] = []
    is_over = threading.Event()

    def work(number: int) -> None:
        with server.client() as client:
            while not is_over.is_set():
                text = TEXTS[(number + len(replies)) % len(TEXTS)]
                replies.append((text, _translate(client, text)))

    with ThreadPoolExecutor(num_clients) as threads:
        workers = [threads.submit(work, number) for number in range(num_clients)]
        try:
            yield replies
        finally:
            is_over.set()
        for worker in workers:
            worker.result()


@pytest.mark.parametrize(("number", "reason"), [(signal.SIGKILL, "exit"), (signal.SIGSTOP, "hang")])
def test_an_engine_that_is_lost_under_load_is_replaced_and_no_answer_is_wrong(
    served_checkpoint: Path, tmp_path: Path, number: signal.Signals, reason: str
) -> None:
    with running_server(served_checkpoint, tmp_path / "log.jsonl", **EAGER) as server:
        with server.client() as client:
            right = {text: _translate(client, text).json() for text in TEXTS}
            with _load(server, 4) as replies:
                for _ in range(2):
                    (engine,) = server.engine_ids()
                    os.kill(engine, number)
                    refusal = _wait_status(client, "/readyz", 503)
                    assert refusal.json()["code"] == "restarting"
                    assert client.get("/livez").status_code == 200
                    _wait_status(client, "/readyz", 200)
                    assert _translate(client, TEXTS[0]).json() == right[TEXTS[0]]
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
        right = _translate(client, TEXTS[0]).json()
        (checkpoint / "model.safetensors").rename(tmp_path / "aside")
        (engine,) = server.engine_ids()
        os.kill(engine, signal.SIGKILL)
        assert _wait_status(client, "/livez", 503).json()["code"] == "lost"
        assert _translate(client, TEXTS[0]).json()["code"] == "lost"
        (tmp_path / "aside").rename(checkpoint / "model.safetensors")
        server.signal(signal.SIGHUP)
        _wait_status(client, "/readyz", 200)
        assert _translate(client, TEXTS[0]).json() == right


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
            _wait_status(client, "/livez", 503)
    assert "engine_restart_failed" in log.read_text()


def test_sigterm_while_the_engine_restarts_leaves_with_0(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    with running_server(served_checkpoint, tmp_path / "log.jsonl") as server:
        (engine,) = server.engine_ids()
        os.kill(engine, signal.SIGKILL)
        with server.client() as client:
            _wait_status(client, "/readyz", 503)
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
