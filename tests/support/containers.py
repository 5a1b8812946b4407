"""Real containers of the image under test, by the docker command.

Owns running one in the host's network (a CI machine may have no bridge), confined as in
docker-compose.yml and in k8s/, and waiting. What is asserted of it is `tests/containers`.
"""

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import httpx

from support.running_server import free_port

IMAGE_VARIABLE = "DRAGOMAN_IMAGE"
CONFINED = (
    "--network=host",
    "--read-only",
    "--tmpfs=/tmp",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
)
START_SECONDS = 150.0

Answer = TypeVar("Answer")


def docker(*arguments: str, seconds: float = 120.0) -> str:
    """What the command printed; it must succeed."""
    done = subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, check=False, timeout=seconds
    )
    assert done.returncode == 0, f"docker {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def run_once(image: str, *command: str, flags: Sequence[str] = ()) -> str:
    """What a confined container of `image` printed; `command` starts with the entrypoint."""
    entrypoint, *arguments = command
    return docker("run", "--rm", *CONFINED, *flags, f"--entrypoint={entrypoint}", image, *arguments)


def wait_for(probe: Callable[[], Answer | None], what: str, *, seconds: float = 60.0) -> Answer:
    """The first answer of `probe` that is not None."""
    deadline = time.monotonic() + seconds
    while (answer := probe()) is None:
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.2)
    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A started container that serves on `port`."""

    name: str
    port: int
    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def status(self, path: str) -> int | None:
        """The answer to a GET on a connection of its own; None when there is none."""
        try:
            return httpx.get(self.url + path, timeout=10.0, trust_env=False).status_code
        except httpx.TransportError:
            return None

    def wait_status(self, path: str, status: int) -> None:
        def answer() -> bool | None:
            return True if self.status(path) == status else None

        wait_for(answer, f"{path} gives {status}", seconds=START_SECONDS)

    def inspect(self, template: str) -> str:
        return docker("inspect", f"--format={template}", self.name)

    def execute(self, *command: str) -> str:
        return docker("exec", self.name, *command)

    def send_sigterm(self) -> None:
        docker("kill", "--signal=TERM", self.name)

    def wait(self) -> int:
        """Block until it has left; its exit status."""
        return int(docker("wait", self.name))


@contextmanager
def serving(
    image: str,
    *flags: str,
    host: str = "127.0.0.1",
    port: int | None = None,
    command: Sequence[str] = (),
    **environment: str,
) -> Iterator[Container]:
    """A container that serves in the host's network, by default on a free port; gone afterwards."""
    port = free_port() if port is None else port
    environment = {"DRAGOMAN_HOST": host, **environment, "DRAGOMAN_PORT": str(port)}
    variables = [f"--env={name}={value}" for name, value in environment.items()]
    name = docker("run", "--detach", *flags, *variables, image, *command)
    try:
        yield Container(name=name, port=port, host=host)
    finally:
        docker("rm", "--force", name)
