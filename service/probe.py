"""Health check of the container: `python -m service.probe` exits with 0 if the server is ready.

Owns what the image's HEALTHCHECK asks, with the standard library alone: it runs every few seconds
beside the server, and the image has no curl. What ready means is `service.api.operations.health`'s.
"""

import os
import sys
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException

from service.environment import port_of

PATH = "/readyz"
TIMEOUT_SECONDS = 3.0

_EVERYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # not bound


def address(environment: Mapping[str, str]) -> tuple[str, int]:
    """Host and port to ask, from the variables that the server itself reads.

    A port that was given to `dragoman serve` as a flag is not among them: in the image, set the
    variables.
    """
    host = environment.get("DRAGOMAN_HOST", "")
    port = port_of(environment.get("DRAGOMAN_PORT", ""), default=8000)
    return _EVERYWHERE.get(host, host), port


def problem(host: str, port: int) -> str | None:
    """Why the server is not ready, in one line; None when it is."""
    connection = HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", PATH)
        reply = connection.getresponse()
        body = reply.read(1000)
    except (OSError, HTTPException) as error:
        return f"http://{host}:{port}{PATH}: {error or type(error).__name__}"
    finally:
        connection.close()
    if reply.status == 200:
        return None
    return f"http://{host}:{port}{PATH}: {reply.status} {body.decode(errors='replace')}"


def main() -> int:
    """Run one check; print what is wrong."""
    complaint = problem(*address(os.environ))
    if complaint is not None:
        print(complaint)  # noqa: T201  # docker inspect shows it
    return int(complaint is not None)


if __name__ == "__main__":
    sys.exit(main())
