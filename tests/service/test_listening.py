"""The parts of the server that no request shows; tests/e2e runs the whole."""

import socket
import subprocess
import sys

import pytest
from fastapi import FastAPI

from model.errors import ConfigError
from service.listening import listen, uvicorn_config
from service.settings import Settings

SCRIPT = """
import resource, sys
from service.listening import allow_connections
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
allowed = allow_connections(200)
print(allowed, *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "limits", "is_told"),
    [
        (100, 400, "200 300 400", False),
        (100, 200, "100 200 200", True),
        (350, 400, "200 350 400", False),
    ],
)
def test_there_may_be_no_more_connections_than_files_for_them(
    soft: int, hard: int, limits: str, is_told: bool
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(soft), str(hard)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == limits
    assert ("few_open_files" in done.stderr) == is_told


def test_a_process_that_may_open_no_file_for_a_connection_does_not_serve() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "90", "90"], capture_output=True, text=True, check=False
    )
    assert "this process may open 90 files (ulimit -Hn); it needs 100 and one" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("seconds", [None, 620.0])
def test_an_idle_connection_is_kept_longer_than_load_balancers_keep_theirs(
    seconds: float | None,
) -> None:
    settings = Settings() if seconds is None else Settings(idle_timeout_seconds=seconds)
    config = uvicorn_config(FastAPI(), settings, lambda _: None, max_connections=9)
    assert config.timeout_keep_alive == (75.0 if seconds is None else seconds)


def test_a_port_that_is_taken_is_named_with_what_names_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ConfigError) as caught:
            listen("127.0.0.1", port)
    assert f"127.0.0.1 port {port}: Address already in use; DRAGOMAN_PORT or --port" in str(
        caught.value
    )


def test_an_address_of_another_machine_says_nothing_of_ports() -> None:
    with pytest.raises(ConfigError, match=r"^cannot listen on 192\.0\.2\.1 port 0: ") as caught:
        listen("192.0.2.1", 0)
    assert "--port" not in str(caught.value)
