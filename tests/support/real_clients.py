"""A live server as real clients find it, and what its own contract answers: what theirs has to be.

Owns that. What the clients are asked is `tests/clients`.
"""

from dataclasses import dataclass
from pathlib import Path

from support.running_server import RunningServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A live server that takes a key and needs none.

    Attributes:
        server: It.
        key: One that it knows.
        clients: Folder of the clients that are not in the development environment.
    """

    server: RunningServer
    key: str
    clients: Path

    @property
    def url(self) -> str:
        return self.server.url

    def translated(self, text: str, source: str, target: str) -> str:
        """What our own contract makes of a text."""
        body = {"texts": text, "source": source, "target": target}
        with self.server.client() as client:
            reply = client.post("/v1/translate", json=body)
        assert reply.status_code == 200, reply.text
        return str(reply.json()["translations"][0]["text"])
