"""The chart's small Redis: what it is given, and that it starts."""

import socket
from pathlib import Path

import pytest

from support.charts import chart, named, needs_helm
from support.manifests import Manifest, container_of
from support.redis_server import BINARY, running_redis

pytestmark = needs_helm


@pytest.mark.parametrize(
    ("memory", "limit"),
    [
        ("1Mi", "256Mi"),
        ("64Mi", "256Mi"),
        ("256Mi", "512Mi"),
        ("300Mi", "600Mi"),
        ("3Gi", "6144Mi"),
    ],
)
def test_the_small_redis_has_twice_the_memory_that_its_counts_may_take(
    memory: str, limit: str
) -> None:
    documents = chart("redis.bundled.enabled=true", f"redis.bundled.memory={memory}")
    container = container_of(named(documents, "Deployment", "one-dragoman-redis"))
    assert container["resources"]["requests"]["memory"] == memory
    assert container["resources"]["limits"]["memory"] == limit


@pytest.mark.skipif(BINARY is None, reason="there is no redis-server; .ci/redis fetches it")
def test_the_small_redis_starts_as_the_chart_starts_it(
    everything: list[Manifest], tmp_path: Path
) -> None:
    container = container_of(named(everything, "Deployment", "one-dragoman-redis"))
    with (
        running_redis(tmp_path, container["args"]) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection,
        connection.makefile("rb") as answers,
    ):
        for name, value in (("maxmemory", "67108864"), ("maxmemory-policy", "volatile-ttl")):
            connection.sendall(f"CONFIG GET {name}\r\n".encode())
            assert [answers.readline() for _ in range(5)][4] == f"{value}\r\n".encode()
