"""Attacks on the wire of a real server, with small counts; `make soak` has large ones."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.running_server import (
    ROOT,
    SMALL_SERVER,
    RunningServer,
    free_port,
    running_server,
)

BODY = (
    b"POST /translate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
    b"content-length: 1000\r\n\r\n{"
)
FEW_FILES = 160


def _until_closed(connection: socket.socket) -> bytes:
    received = b""
    while chunk := connection.recv(65_536):
        received += chunk
    return received


def test_sigterm_refuses_at_once_what_still_arrives(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    with running_server(served_checkpoint, log, DRAGOMAN_BODY_TIMEOUT_SECONDS="3600") as server:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(BODY)
            server.wait_metric("dragoman_requests_in_progress", 2)  # it, and the one that asks
            server.signal(signal.SIGTERM)
            head, _, body = _until_closed(connection).partition(b"\r\n\r\n")
        assert server.wait() == 0
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nconnection: close" in head
    assert b"\r\ncontent-type: application/json" in head
    assert b'"code":"draining"' in body
    assert "Exception" not in log.read_text()


def test_a_server_that_leaves_with_its_engine_refuses_what_still_arrives(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    settings = {
        "DRAGOMAN_BODY_TIMEOUT_SECONDS": "3600",
        "DRAGOMAN_MAX_RESTARTS": "0",
        "DRAGOMAN_EXIT_WHEN_LOST": "true",
    }
    with running_server(served_checkpoint, tmp_path / "log.jsonl", **settings) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(BODY)
            server.wait_metric("dragoman_requests_in_progress", 2)
            (engine,) = server.engine_ids()
            os.kill(engine, signal.SIGKILL)
            answer = _until_closed(connection)
        assert server.wait() == 1
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b'"code":"draining"' in answer


def test_a_flood_of_requests_in_one_piece_costs_little(server: RunningServer) -> None:
    def resident() -> int:
        pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
    data = request * (8 * 2**20 // len(request))
    before, floods = resident(), []
    for _ in range(10):
        flood = socket.create_connection(("127.0.0.1", server.port))
        flood.setblocking(False)
        floods.append((flood, memoryview(data)))
    rounds = 0
    while rounds < 30:  # as much as the server takes, and probes between
        rounds += 1
        for place, (flood, rest) in enumerate(floods):
            try:
                floods[place] = flood, rest[flood.send(rest) :]
            except BlockingIOError:
                continue
        with server.client() as client:
            assert client.get("/livez").status_code == 200
    assert resident() - before < 40 * 2**20
    for flood, _ in floods:
        flood.close()


@contextmanager
def _with_few_files(checkpoint: Path, log: Path) -> Iterator[RunningServer]:
    """A server that may open few files, and finds that out by itself."""
    port = free_port()
    serve = [sys.executable, "-m", "service.cli.main", "serve", "--device", "cpu"]
    serve += ["--port", str(port), "--checkpoint", str(checkpoint)]
    limited = ["sh", "-c", f'ulimit -n {FEW_FILES} && exec "$@"', "sh", *serve]
    clean = {name: value for name, value in os.environ.items() if "DRAGOMAN_" not in name}
    with (
        log.open("w") as errors,
        subprocess.Popen(
            limited,
            cwd=ROOT,
            env=clean | SMALL_SERVER,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        server = RunningServer(process=process, port=port, log=log)
        try:
            server.wait_ready()
            yield server
        finally:
            process.kill()


def test_where_few_files_may_be_open_a_lost_engine_is_still_replaced(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    with _with_few_files(served_checkpoint, tmp_path / "log.jsonl") as server:
        limit = server.metrics()["dragoman_max_connections"]
        assert limit == FEW_FILES - 100
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(FEW_FILES)]
        for connection in held:
            connection.sendall(b"GET /livez HTTP/1.1\r\nhost: a\r\n")  # no end: it has no request
        (engine,) = server.engine_ids()
        os.kill(engine, signal.SIGKILL)
        server.wait_metric("dragoman_engine_restarts_total{reason=exit}", 1)
        server.wait_metric("dragoman_engine_up", 1)
        for connection in held:
            connection.close()
