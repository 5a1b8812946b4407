"""From the first connection to the last: booting, ready, draining, lost."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from model.native import kernels
from service.access.keys import ApiKey
from support.running_server import (
    POLL_SECONDS,
    ROOT,
    RunningServer,
    running_server,
    starting_server,
)
from support.server_load import SLOW, accepted_work, translate_many, wait_status
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint


def _wait_engine(server: RunningServer) -> int:
    """The process of the engine, as soon as it is one and no copy of the front any more."""
    while True:
        for engine_id in server.engine_ids():
            if b"service.engine.worker" in Path(f"/proc/{engine_id}/cmdline").read_bytes():
                return engine_id
        time.sleep(POLL_SECONDS)


def _log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def test_it_listens_at_once_and_is_alive_but_not_ready_while_booting(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    with starting_server(served_checkpoint, _log(tmp_path)) as server:
        server.wait_listening()
        engine = _wait_engine(server)
        os.kill(engine, signal.SIGSTOP)  # it would be ready before all of this is asked
        with server.client() as client:
            assert client.get("/livez").status_code == 200
            for path in ("/readyz", "/health", "/languages"):
                reply = client.get(path)
                assert (reply.status_code, reply.json()["code"]) == (503, "booting")
                assert int(reply.headers["retry-after"]) > 0
            query = {"q": "a", "source": "en", "target": "zh"}
            reply = client.post("/translate", json=query)
            assert (reply.status_code, reply.json()["code"]) == (503, "booting")
            os.kill(engine, signal.SIGCONT)
            problem = kernels.find_problem()
            compute_type = "int8" if problem is None else f"float32, slow: {problem}"
            assert server.wait_ready() == (
                f"Dragoman listens on {server.url} with checkpoint tiny"
                f" ({served_checkpoint}) on cpu ({compute_type})\n"
            )
            assert client.get("/readyz").status_code == 200
            assert client.post("/translate", json=query).status_code == 200


def test_none_of_its_processes_imports_a_file_of_the_folder_that_it_is_started_in(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    for module in ("token", "json/__init__", "service/__init__", "model/__init__"):
        file = folder / f"{module}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("raise SystemExit('a file of mine')\n")
    with running_server(
        served_checkpoint, _log(tmp_path), folder=folder, DRAGOMAN_FRONTS="2"
    ) as server:
        server.wait_metric("dragoman_fronts", 2)
        with server.client() as client:
            reply = client.post(
                "/translate_file",
                data={"source": "en", "target": "zh"},
                files={"file": ("a.txt", b"Small birds sing.")},
            )
            assert reply.status_code == 200
    assert "a file of mine" not in _log(tmp_path).read_text()


def test_sigterm_finishes_what_was_accepted_refuses_the_rest_and_leaves_with_0(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    with running_server(served_checkpoint, _log(tmp_path), **SLOW) as server:
        with server.client() as client, accepted_work(server, 2) as replies:
            server.signal(signal.SIGTERM)
            refusal = wait_status(client, "/readyz", 503)
            assert refusal.json()["code"] == "draining"
            assert client.get("/livez").status_code == 200
            late = translate_many(server)
            assert (late.status_code, late.json()["code"]) == (503, "draining")
            assert int(late.headers["retry-after"]) > 0
            assert late.headers["connection"] == "close"
            assert not all(reply.done() for reply in replies)
        assert [reply.result().status_code for reply in replies] == [200] * 2
        assert [reply.result().headers["connection"] for reply in replies] == ["close"] * 2
        assert server.wait() == 0


def test_sigint_while_booting_leaves_with_0(served_checkpoint: Path, tmp_path: Path) -> None:
    with starting_server(served_checkpoint, _log(tmp_path)) as server:
        server.wait_listening()
        engine = _wait_engine(server)
        os.kill(engine, signal.SIGSTOP)  # it would be ready before all of this is asked
        with server.client() as client:
            assert client.get("/livez").status_code == 200
        server.signal(signal.SIGINT)
        assert server.wait() == 0


@pytest.mark.parametrize("num_fronts", ["1", "2"])
def test_work_that_outlives_the_grace_time_is_cut_off(
    served_checkpoint: Path, tmp_path: Path, num_fronts: str
) -> None:
    short = SLOW | {"DRAGOMAN_GRACE_SECONDS": "0.2", "DRAGOMAN_FRONTS": num_fronts}
    with running_server(served_checkpoint, _log(tmp_path), **short) as server:
        with accepted_work(server, 2) as replies:
            server.signal(signal.SIGTERM)
        cut_off = [reply.result() for reply in replies if reply.result().is_error]
        assert {(one.status_code, one.json()["code"]) for one in cut_off} == {(503, "cut_off")}
        assert all("retry-after" in r.result().headers for r in replies if r.result().is_error)
        assert server.wait() == 0


def test_a_second_signal_does_not_wait(served_checkpoint: Path, tmp_path: Path) -> None:
    with running_server(served_checkpoint, _log(tmp_path), **SLOW) as server:
        with server.client() as client, accepted_work(server, 4) as replies:
            server.signal(signal.SIGTERM)
            wait_status(client, "/readyz", 503)
            server.signal(signal.SIGTERM)
        assert 503 in {reply.result().status_code for reply in replies}
        assert server.wait() == 0


def test_after_the_drain_a_second_signal_leaves_who_does_not_read(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    log = _log(tmp_path)
    with running_server(served_checkpoint, log) as server, socket.socket() as sloth:
        sloth.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sloth.connect(("127.0.0.1", server.port))
        sloth.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n" * 300)
        while server.metrics()["dragoman_open_connections"] < 2:
            time.sleep(POLL_SECONDS)
        server.signal(signal.SIGTERM)
        while '"drained"' not in log.read_text():
            time.sleep(POLL_SECONDS)
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
    assert "timeout graceful shutdown exceeded" not in log.read_text()  # what uvicorn alone says
    assert "Exception" not in log.read_text()


def test_a_server_whose_announcement_nobody_can_read_serves(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    with starting_server(served_checkpoint, _log(tmp_path)) as server:
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.wait_listening()
        with server.client() as client:
            wait_status(client, "/readyz", 200)
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
    assert '"standard_output_lost"' in _log(tmp_path).read_text()


def test_an_engine_that_is_lost_for_good_answers_everything_with_503_at_once(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    never = SLOW | {"DRAGOMAN_MAX_RESTARTS": "0"}
    with running_server(served_checkpoint, _log(tmp_path), **never) as server:
        with server.client() as client:
            with accepted_work(server, 2) as replies:
                (engine,) = server.engine_ids()
                os.kill(engine, signal.SIGKILL)
            for reply in (*(reply.result() for reply in replies), translate_many(server)):
                assert reply.status_code == 503
                assert int(reply.headers["retry-after"]) > 0
            for path in ("/livez", "/readyz", "/health"):
                reply = wait_status(client, path, 503)
                assert reply.json()["code"] == "lost"
        metrics = server.metrics()
        for name in ("engine_up", "pending_segments", "queued_segments", "slots_in_use"):
            assert metrics[f"dragoman_{name}"] == 0
        server.signal(signal.SIGTERM)
        assert server.wait() == 0


def test_a_server_that_nobody_watches_leaves_when_its_engine_is_lost_for_good(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    never = {"DRAGOMAN_MAX_RESTARTS": "0", "DRAGOMAN_EXIT_WHEN_LOST": "true"}
    with running_server(served_checkpoint, _log(tmp_path), **never) as server:
        (engine,) = server.engine_ids()
        os.kill(engine, signal.SIGKILL)
        assert server.wait() == 1
    assert "dragoman: the translation engine was lost too often" in _log(tmp_path).read_text()


def _failed_start(*flags: str, **environment: str) -> str:
    """What a start that must fail says, after checking that it fails with 1 and one line."""
    result = subprocess.run(
        [sys.executable, "-m", "service.cli.main", "serve", "--port", "0", *flags],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "DRAGOMAN_LOG_LEVEL": "error"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 1
    assert result.stdout == ""
    (message,) = [line for line in result.stderr.splitlines() if not line.startswith("{")]
    assert message.startswith("dragoman: ")
    return message


def test_a_missing_checkpoint_is_one_clear_line(tmp_path: Path) -> None:
    message = _failed_start("--checkpoint", str(tmp_path / "none"))
    assert str(tmp_path / "none") in message
    assert "--checkpoint or DRAGOMAN_CHECKPOINT" in message


def test_a_damaged_checkpoint_is_one_clear_line_that_names_the_file(
    served_checkpoint: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for file in served_checkpoint.iterdir():
        (damaged / file.name).write_bytes(file.read_bytes())
    weights = bytearray((damaged / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (damaged / "model.safetensors").write_bytes(weights)
    assert "model.safetensors" in _failed_start("--checkpoint", str(damaged))


def test_a_missing_device_is_one_clear_line(served_checkpoint: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    message = _failed_start("--checkpoint", str(served_checkpoint), "--device", "cuda")
    assert "cuda" in message


def test_a_port_that_is_taken_is_one_clear_line(served_checkpoint: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        message = _failed_start("--checkpoint", str(served_checkpoint), "--port", str(port))
    assert f"cannot listen on 127.0.0.1 port {port}" in message


def test_an_impossible_setting_is_one_clear_line() -> None:
    assert "DRAGOMAN_MAX_TEXTS is '0'" in _failed_start(DRAGOMAN_MAX_TEXTS="0")


def test_a_misspelt_variable_is_one_clear_line_with_the_nearest_name() -> None:
    message = _failed_start(DRAGOMAN_API_KEY_FILE="keys.toml")
    assert message == (
        "dragoman: DRAGOMAN_API_KEY_FILE is no setting; the nearest name is DRAGOMAN_API_KEYS_FILE"
    )


def test_the_settings_in_effect_are_logged_at_the_start_without_secrets(tmp_path: Path) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))
    line = ApiKey(name="alice", sha256=b"s" * 32).line()
    with running_server(checkpoint, _log(tmp_path), DRAGOMAN_API_KEYS=line) as server:
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
    text = _log(tmp_path).read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    [settings] = [line for line in lines if line["event"] == "settings"]
    assert (settings["api_keys"], settings["redis_url"]) == ("set", "unset")
    assert (settings["num_threads"], settings["checkpoint"]) == (1, str(checkpoint))
    assert (b"s" * 32).hex() not in text
