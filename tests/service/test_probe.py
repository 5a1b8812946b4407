import socket
import subprocess
import sys

import pytest

from service.probe import PATH, address, problem
from service.settings import Settings
from support.running_server import RunningServer, free_port


def test_without_settings_it_asks_where_the_server_listens_by_default() -> None:
    settings = Settings()
    assert address({}) == (settings.host, settings.port)


@pytest.mark.parametrize(
    ("host", "asked"),
    [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("", "127.0.0.1"), ("10.0.0.7", "10.0.0.7")],
)
def test_it_asks_this_machine_when_the_server_listens_everywhere(host: str, asked: str) -> None:
    assert address({"DRAGOMAN_HOST": host, "DRAGOMAN_PORT": "8123"}) == (asked, 8123)


def test_a_ready_server_has_no_problem(server: RunningServer) -> None:
    assert problem("127.0.0.1", server.port) is None


def test_a_server_that_is_not_ready_or_not_there_is_a_problem_in_one_line() -> None:
    port = free_port()
    said = problem("127.0.0.1", port)
    assert said == f"http://127.0.0.1:{port}{PATH}: [Errno 111] Connection refused"


def test_an_answer_that_is_not_http_is_a_problem() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        program = f"from service.probe import problem; print(problem('127.0.0.1', {port}))"
        with subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
        ) as asking:
            connection, _ = listener.accept()
            with connection:
                assert connection.recv(1000).startswith(f"GET {PATH} ".encode())
                connection.sendall(b"what?\r\n")
            said, _ = asking.communicate(timeout=60)
    assert said.startswith(f"http://127.0.0.1:{port}{PATH}: ")


def test_it_imports_nothing_outside_the_standard_library() -> None:
    program = (
        "import sys, service.probe;"
        "print(*{name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names)"
    )
    found = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True
    )
    assert set(found.stdout.split()) <= {"__main__", "service"}
