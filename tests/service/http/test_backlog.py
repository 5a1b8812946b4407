from hypothesis import given
from hypothesis import strategies as st

from service.http.backlog import Backlog

PARTS = st.sampled_from(
    [b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"GET / HTTP/1.1\r\nhost: a\r\n", b"a"]
)


@given(st.lists(st.lists(PARTS).map(b"".join)))
def test_pieces_are_what_came_and_none_has_the_end_of_two_heads(parts: list[bytes]) -> None:
    backlog = Backlog()
    given_out = b""
    for part in parts:
        backlog.add(part)
        while backlog:
            piece = backlog.take()
            start = max(0, len(given_out) - 2)
            given_out += piece
            ends = [
                at for at in range(start, len(given_out)) if given_out[at : at + 3] == b"\n\r\n"
            ]
            assert piece
            assert ends in ([], [len(given_out) - 3])
    assert given_out == b"".join(parts)


@given(st.integers(0, 300), st.sampled_from([b"\n\r\n", b"a", b"\r\n\r\n"]))
def test_a_body_is_not_searched_for_the_ends_of_heads(num_bytes: int, part: bytes) -> None:
    body, head = (part * 300)[:num_bytes], b"GET / HTTP/1.1\r\n\r\nGET"
    backlog = Backlog()
    backlog.add(body + head)
    assert b"".join([backlog.take(num_bytes)] if body else []) == body
    assert backlog.take().endswith(b"\n\r\n")
    assert len(backlog) <= len(head)


def test_a_large_body_is_given_out_in_bounded_pieces_too() -> None:
    backlog = Backlog()
    backlog.add(b"\n\r\n" * 50_000)
    sizes = []
    while backlog:
        sizes.append(len(backlog.take(len(backlog))))
    assert sizes == [65_536, 65_536, 18_928]


def test_a_large_backlog_is_given_out_in_bounded_pieces() -> None:
    backlog = Backlog()
    backlog.add(b"x" * 200_000)
    sizes = []
    while backlog:
        sizes.append(len(backlog.take()))
    assert sum(sizes) == 200_000
    assert max(sizes) <= 65_536
