"""Where a request may go, and what it may tell."""

import socket
import threading
from pathlib import Path

import pytest

from model.errors import ConfigError, RegistryError, UnreachableError
from model.exchange.registry.transport import Credential, Reply, Transport, origin_of
from support.registry_mirror import Fault, Mirror

TOKEN = "hf_secret"


def _body(reply: Reply) -> bytes:
    parts = []
    while block := reply.read(1_000):
        parts.append(block)
    reply.close()
    return b"".join(parts)


def _with_token(mirror: Mirror) -> Transport:
    return Transport((Credential(origin=origin_of(mirror.url), token=TOKEN),), timeout_seconds=5.0)


def test_a_body_is_read_to_its_end(mirror: Mirror) -> None:
    mirror.files["/a"] = b"x" * 100_000
    assert _body(Transport().request(f"{mirror.url}/a")) == b"x" * 100_000


def test_head_has_headers_and_no_body(mirror: Mirror) -> None:
    mirror.files["/a"] = b"x" * 100
    reply = Transport().request(f"{mirror.url}/a", method="HEAD")
    assert (reply.headers["Content-Length"], _body(reply)) == ("100", b"")


def test_redirects_are_followed_to_other_hosts_without_the_token(
    mirror: Mirror, other_mirror: Mirror
) -> None:
    other_mirror.files["/b"] = b"here"
    mirror.always["/a"] = Fault(status=302, headers={"Location": f"{other_mirror.url}/b"})
    reply = _with_token(mirror).request(f"{mirror.url}/a", headers={"Range": "bytes=1-"})
    assert reply.url == f"{other_mirror.url}/b"
    assert _body(reply) == b"ere"
    assert mirror.asked[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert "authorization" not in other_mirror.asked[0].headers
    assert TOKEN not in str(other_mirror.asked)


def test_a_redirect_on_the_same_host_keeps_the_token(mirror: Mirror) -> None:
    mirror.files["/b"] = b"here"
    mirror.always["/a"] = Fault(status=307, headers={"Location": "/b"})
    assert _body(_with_token(mirror).request(f"{mirror.url}/a")) == b"here"
    assert [one.headers.get("authorization") for one in mirror.asked] == [f"Bearer {TOKEN}"] * 2


def test_a_token_is_not_shown() -> None:
    credential = Credential(origin=("https", "a", 443), token=TOKEN)
    assert TOKEN not in repr(credential)


def test_too_many_redirects_are_an_error(mirror: Mirror) -> None:
    mirror.always["/a"] = Fault(status=302, headers={"Location": "/a"})
    with pytest.raises(RegistryError, match="redirects more than 5 times"):
        Transport().request(f"{mirror.url}/a")
    assert len(mirror.asked) == 6


@pytest.mark.parametrize(
    "location",
    ["file:///etc/passwd", "ftp://a/b", "data:,x", "http://user:word@a/b", "http://[bad/"],
)
def test_redirects_elsewhere_are_not_followed(mirror: Mirror, location: str) -> None:
    mirror.always["/a"] = Fault(status=302, headers={"Location": location})
    with pytest.raises(RegistryError, match="redirects to"):
        Transport().request(f"{mirror.url}/a")


def test_a_redirect_to_nowhere_is_an_error(mirror: Mirror) -> None:
    mirror.always["/a"] = Fault(status=302)
    with pytest.raises(RegistryError, match="redirects to nowhere"):
        Transport().request(f"{mirror.url}/a")


def test_nobody_there_is_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(UnreachableError, match="cannot be reached"):
        Transport().request(f"http://127.0.0.1:{port}/a")


def test_silence_is_unreachable() -> None:
    """A server that accepts and never says a word."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/a"
        with pytest.raises(UnreachableError, match="does not answer in time"):
            Transport(timeout_seconds=0.1).request(url)


def test_an_answer_that_is_no_http_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/a"
        client = Transport(timeout_seconds=5.0)

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1_000)
                connection.sendall(b"220 mail.example ready\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(UnreachableError, match="broke off"):
            client.request(url)
        thread.join()


def test_a_proxy_of_the_environment_is_asked(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.files["/a"] = b"by proxy"
    monkeypatch.setenv("http_proxy", mirror.url)
    assert _body(Transport().request("http://models.invalid/a")) == b"by proxy"
    assert mirror.asked[0].headers["host"] == "models.invalid"


@pytest.mark.parametrize("url", ["http://[bad", "http://a:port/"])
def test_a_url_that_is_none_is_told(url: str) -> None:
    with pytest.raises(ConfigError, match="is no URL"):
        origin_of(url)


def test_default_ports_are_the_same_origin() -> None:
    assert origin_of("https://Hub.example/a") == origin_of("https://hub.example:443/b")
    assert origin_of("http://hub.example") != origin_of("https://hub.example")


class TestLocalFiles:
    def test_ranges_and_validators_are_those_of_a_server(self, tmp_path: Path) -> None:
        path = tmp_path / "a b"
        path.write_bytes(b"0123456789")
        url = path.as_uri()
        reply = Transport().request(url)
        tag = reply.headers["ETag"]
        assert (reply.status, reply.headers["Content-Length"], _body(reply)) == (
            200,
            "10",
            b"0123456789",
        )
        reply = Transport().request(url, headers={"Range": "bytes=4-", "If-Range": tag})
        assert (reply.status, reply.headers["Content-Range"]) == (206, "bytes 4-9/10")
        assert _body(reply) == b"456789"
        reply = Transport().request(url, headers={"Range": "bytes=4-", "If-Range": '"other"'})
        assert (reply.status, _body(reply)) == (200, b"0123456789")

    def test_head_opens_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"0123")
        reply = Transport().request((tmp_path / "a").as_uri(), method="HEAD")
        assert (reply.headers["Content-Length"], _body(reply)) == ("4", b"")

    def test_what_is_not_there_is_404(self, tmp_path: Path) -> None:
        assert Transport().request((tmp_path / "none").as_uri()).status == 404
        assert Transport().request(tmp_path.as_uri()).status == 404

    def test_another_machine_is_none(self) -> None:
        with pytest.raises(RegistryError, match="another machine"):
            Transport().request("file://server/share/a")
