"""Clients of both APIs as they are published, against a live server of the bundled checkpoints.

`make test-contract` (`.ci/clients`) installs those that the development environment does not have
and names their folder in DRAGOMAN_CLIENTS; without it none of these tests is collected. A test is a
call of the client that its marker names; the table at the end counts them.
"""

import os
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256

import httpx
import pytest

from service.access.keys import ApiKey, new_key
from support.real_clients import Live
from support.running_server import ROOT, running_server

FOLDER_VARIABLE = "DRAGOMAN_CLIENTS"
OUTCOMES = ("passed", "failed", "skipped")

if FOLDER_VARIABLE not in os.environ:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("live")
    key = new_key()[0]
    line = ApiKey(name="client", sha256=sha256(key.encode()).digest()).line()
    (folder / "keys.toml").write_text(line)
    environment = {
        "DRAGOMAN_API_KEYS_FILE": str(folder / "keys.toml"),
        "DRAGOMAN_KEY_REQUIRED": "false",
        "DRAGOMAN_SUGGESTIONS": str(folder / "suggestions.jsonl"),
    }
    clients = (ROOT / os.environ[FOLDER_VARIABLE]).resolve()
    with running_server(ROOT / "checkpoints", folder / "log.jsonl", **environment) as server:
        yield Live(server=server, key=key, clients=clients)


@pytest.fixture(scope="session")
def http(live: Live) -> Iterator[httpx.Client]:
    with live.server.client() as client:
        yield client


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if marker := item.get_closest_marker("client"):
            item.user_properties.append(("client", marker.args[0]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = Counter(
        (str(value), "failed" if outcome == "error" else outcome)
        for outcome in (*OUTCOMES, "error")
        for report in terminalreporter.stats.get(outcome, ())
        for name, value in getattr(report, "user_properties", ())
        if name == "client"
    )
    if counts:
        terminalreporter.write_sep("=", "calls of real clients")
        terminalreporter.write_line(f"{'client':28}" + "".join(f"{one:>9}" for one in OUTCOMES))
    for client in dict.fromkeys(client for client, _ in sorted(counts)):
        numbers = "".join(f"{counts[client, one]:>9}" for one in OUTCOMES)
        terminalreporter.write_line(f"{client:28}{numbers}")
