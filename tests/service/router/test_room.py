"""How many bytes uploads may take in a router, and how many those of one address."""

import asyncio

import pytest

from service.errors import RequestError
from service.router.room import UploadRoom

A, B, C = "192.0.2.1", "192.0.2.2", "192.0.2.3"


@pytest.fixture
def room() -> UploadRoom:
    return UploadRoom(max_bytes=100, max_per_address=3)


def _refusal(room: UploadRoom, address: str, num_bytes: int) -> tuple[object, object]:
    """The value and the limit of a refusal, which takes nothing."""
    before = room.num_bytes
    with pytest.raises(RequestError) as caught, room.held(address, num_bytes):
        pass
    problem = caught.value.problem
    assert (problem.status, problem.code) == (429, "overloaded")
    assert problem.retry_after_seconds
    assert f"{problem.value} " in problem.message
    assert problem.message.endswith(f"the limit is {problem.limit}")
    assert room.num_bytes == before
    return problem.value, problem.limit


def test_all_uploads_have_so_many_bytes(room: UploadRoom) -> None:
    with room.held(A, 60), room.held(B, 40):
        assert _refusal(room, C, 1) == (101, 100)
    with room.held(A, 100):  # nobody else has any
        assert room.num_bytes == 100
    assert room.num_bytes == 0


def test_an_address_leaves_a_quarter_of_what_the_others_have_not_taken(room: UploadRoom) -> None:
    with room.held(A, 40), room.held(A, 35):
        assert _refusal(room, A, 1) == (76, 75)
        with room.held(B, 25):
            pass
    with room.held(B, 20), room.held(A, 30), room.held(A, 30):
        assert _refusal(room, A, 1) == (61, 60)


def test_an_address_has_so_many_uploads_at_once(room: UploadRoom) -> None:
    with room.held(A, 0), room.held(A, 0):
        with room.held(A, 0):
            assert _refusal(room, A, 0) == (4, 3)
            with room.held(B, 0):
                pass
        with room.held(A, 0):
            pass


def test_what_was_not_announced_is_held_as_it_comes(room: UploadRoom) -> None:
    with room.held(A, 0) as hold, room.held(B, 50):
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
        with room.held(A, 10) as hold:
            hold(70)
            raise error

    with pytest.raises(error):
        arrive()
    assert room.num_bytes == 0
    with room.held(A, 100):
        pass
