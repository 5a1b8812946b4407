import pytest

from service.http.heads import problem_with

HOST = (b"host", b"a")
CHUNKED = (b"transfer-encoding", b"chunked")


@pytest.mark.parametrize(
    ("version", "headers"),
    [
        ("1.1", [HOST]),
        ("1.1", [(b"host", b"")]),
        ("1.1", [(b"host", b"a.example:8000"), CHUNKED]),
        ("1.1", [(b"host", b"[::1]:80"), (b"transfer-encoding", b" Chunked")]),
        ("1.0", []),
        ("1.0", [HOST]),
    ],
)
def test_what_is_right_is_let_through(version: str, headers: list[tuple[bytes, bytes]]) -> None:
    assert problem_with(version, headers) is None


@pytest.mark.parametrize(
    ("version", "headers", "message"),
    [
        ("0.9", [HOST], "the request is HTTP/0.9; it must be HTTP/1.1"),
        ("2.0", [HOST], "the request is HTTP/2.0; it must be HTTP/1.1"),
        ("1.1", [], "the request has 0 Host headers; it must have one"),
        ("1.1", [HOST, HOST], "the request has 2 Host headers; it must have one"),
        ("1.0", [HOST, (b"host", b"b")], "the request has 2 Host headers; it must have one"),
        *(
            ("1.1", [(b"host", host)], "the Host header is no host with or without a port")
            for host in (b"a b", b"a/b", b"a@b", b"a:b", b"[::1", b"a,b:1:2", b"\xe4")
        ),
        ("1.0", [CHUNKED], "Transfer-Encoding is not of HTTP/1.0"),
        *(
            ("1.1", [HOST, *codings], "the Transfer-Encoding must be chunked alone")
            for codings in (
                [(b"transfer-encoding", b"gzip, chunked")],
                [(b"transfer-encoding", b"identity")],
                [(b"transfer-encoding", b"chunked, chunked")],
                [CHUNKED, CHUNKED],
            )
        ),
    ],
)
def test_what_is_wrong_is_told(
    version: str, headers: list[tuple[bytes, bytes]], message: str
) -> None:
    problem = problem_with(version, headers)
    assert problem is not None
    assert (problem.status, problem.code, problem.message) == (400, "invalid_http", message)
