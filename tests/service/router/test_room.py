"""How many bytes uploads may take in a router, and how many those of one address."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from service.errors import RequestError
from service.router.room import UploadRoom

Hold = Callable[[int], None]

A, B, C = "192.0.2.1", "192.0.2.2", "192.0.2.3"


@pytest.fixture
def room() -> UploadRoom:
    return UploadRoom(max_bytes=100, max_per_address=3)


def _held(room: UploadRoom, stack: ExitStack, address: str, num_bytes: int) -> Hold:
    """An upload of which so many bytes have come."""
    hold = stack.enter_context(room.held(address))
    hold(num_bytes)
    return hold


def _refusal(room: UploadRoom, address: str, num_bytes: int) -> tuple[object, object]:
    """The value and the limit of a refusal, which takes nothing."""
    before = room.num_bytes
    with pytest.raises(RequestError) as caught, ExitStack() as stack:
        _held(room, stack, address, num_bytes)
    problem = caught.value.problem
    assert (problem.status, problem.code) == (429, "overloaded")
    assert problem.retry_after_seconds
    assert f"{problem.value} " in problem.message
    assert problem.message.endswith(f"the limit is {problem.limit}")
    assert room.num_bytes == before
    return problem.value, problem.limit


def test_all_uploads_have_so_many_bytes(room: UploadRoom) -> None:
    with ExitStack() as stack:
        _held(room, stack, A, 60)
        _held(room, stack, B, 40)
        assert _refusal(room, C, 1) == (101, 100)
    with ExitStack() as stack:
        _held(room, stack, A, 100)  # nobody else has any
        assert room.num_bytes == 100
    assert room.num_bytes == 0


def test_an_address_leaves_a_quarter_of_what_the_others_have_not_taken(room: UploadRoom) -> None:
    with ExitStack() as stack:
        _held(room, stack, A, 40)
        _held(room, stack, A, 35)
        assert _refusal(room, A, 1) == (76, 75)
        _held(room, stack, B, 25)
    with ExitStack() as stack:
        _held(room, stack, B, 20)
        for _ in range(2):
            _held(room, stack, A, 30)
        assert _refusal(room, A, 1) == (61, 60)


def test_an_upload_of_which_nothing_has_come_is_in_nobodys_way(room: UploadRoom) -> None:
    with ExitStack() as stack:
        first = _held(room, stack, A, 30)
        second = _held(room, stack, A, 0)
        first(90)
        with pytest.raises(RequestError, match=r"91 bytes .* from you .* limit is 75"):
            second(1)
        assert room.num_bytes == 90


def test_an_address_has_so_many_uploads_at_once(room: UploadRoom) -> None:
    with room.held(A), room.held(A):
        with room.held(A):
            assert _refusal(room, A, 0) == (4, 3)
            with room.held(B):
                pass
        with room.held(A):
            pass


def test_bytes_are_held_as_they_come(room: UploadRoom) -> None:
    with ExitStack() as stack:
        hold = _held(room, stack, A, 0)
        _held(room, stack, B, 50)
        hold(30)
        hold(20)  # less than there is
        assert room.num_bytes == 80
        with pytest.raises(RequestError, match=r"101 bytes .* limit is 100"):
            hold(51)
        assert room.num_bytes == 80
    assert room.num_bytes == 0


@pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError, KeyboardInterrupt])
def test_room_is_given_back_whatever_happens(room: UploadRoom, error: type[BaseException]) -> None:
    def arrive() -> None:
        with room.held(A) as hold:
            hold(70)
            raise error

    with pytest.raises(error):
        arrive()
    assert room.num_bytes == 0
    with room.held(A) as hold:
        hold(100)
