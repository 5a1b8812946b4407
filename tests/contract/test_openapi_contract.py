"""Generated requests: whatever the document allows or forbids, the answers keep to it.

A few examples per operation; `make fuzz` sends ten thousand.
"""

from collections.abc import Iterator

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.running_server import RunningServer
from support.texts import awkward_texts

MODES = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
FEW = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(scope="module")
def schema(server: RunningServer) -> schemathesis.openapi.OpenApiSchema:
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")
