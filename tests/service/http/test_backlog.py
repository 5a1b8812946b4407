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


def test_a_large_backlog_is_given_out_in_bounded_pieces() -> None:
    backlog = Backlog()
    backlog.add(b"x" * 200_000)
    sizes = []
    while backlog:
        sizes.append(len(backlog.take()))
    assert sum(sizes) == 200_000
    assert max(sizes) <= 65_536
