"""A plugin of pytest: Flask's client for tests, as far as LibreTranslate's tests use it, over HTTP.

Owns the fixture `client` that they ask for, and the file that says how each of them ended. The
address of the server and the file are in the environment.
"""

import json
import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

URL_VARIABLE = "LIVE_SERVER"
OUTCOMES_VARIABLE = "OUTCOMES"

_outcomes = pytest.StashKey[dict[str, str]]()


@dataclass(frozen=True, slots=True)
class Response:
    """An answer with the names that Flask has for its parts."""

    status_code: int
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)


class FlaskClient:
    """Requests to a live server.

    Args:
        client: Of the server.
    """

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def get(self, path: str) -> Response:
        return _response(self._client.get(path))

    def post(self, path: str, **body: Any) -> Response:
        return _response(self._client.post(path, **body))


def _response(reply: httpx.Response) -> Response:
    return Response(reply.status_code, reply.content)


@pytest.fixture
def client() -> Iterator[FlaskClient]:
    with httpx.Client(base_url=os.environ[URL_VARIABLE], trust_env=False, timeout=60) as client:
        yield FlaskClient(client)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_outcomes] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" or report.outcome != "passed":
        item.config.stash[_outcomes][item.name] = report.outcome
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    outcomes = json.dumps(session.config.stash[_outcomes])
    Path(os.environ[OUTCOMES_VARIABLE]).write_text(outcomes, encoding="utf-8")
