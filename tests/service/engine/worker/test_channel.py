import socket
from collections.abc import Iterator

import pytest

from service.engine.errors import FrontGoneError, ProtocolError
from service.engine.messages import (
    Cancel,
    Cancelled,
    Shutdown,
    encode_frame,
    engine_messages,
)
from service.engine.worker.channel import EngineChannel


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, EngineChannel]]:
    front, engine = socket.socketpair()
    with front, EngineChannel(engine) as channel:
        front.settimeout(10)
        yield front, channel


def test_messages_come_in_the_order_they_were_sent(ends):
    front, channel = ends
    sent = [Cancel(segment_ids=(1,)), Cancel(segment_ids=(2,)), Shutdown()]
    front.sendall(b"".join(map(encode_frame, sent)))
    assert channel.receive(wait_seconds=None) == sent


def test_a_busy_engine_does_not_wait_for_messages(ends):
    _, channel = ends
    assert channel.receive(wait_seconds=0.0) == []


def test_half_a_message_is_kept_until_the_rest_comes(ends):
    front, channel = ends
    frame = encode_frame(Cancel(segment_ids=(1, 2, 3)))
    front.sendall(frame[:5])
    assert channel.receive(wait_seconds=0.0) == []
    front.sendall(frame[5:])
    assert channel.receive(wait_seconds=0.0) == [Cancel(segment_ids=(1, 2, 3))]


def test_answers_reach_the_front(ends):
    front, channel = ends
    channel.send([Cancelled(segment_id=1), Cancelled(segment_id=2)])
    answers = engine_messages().feed(front.recv(4096))
    assert answers == [Cancelled(segment_id=1), Cancelled(segment_id=2)]


@pytest.mark.parametrize("wait_seconds", [None, 0.0, 30.0])
def test_a_front_that_closed_its_end_is_gone(ends, wait_seconds):
    front, channel = ends
    front.close()
    with pytest.raises(FrontGoneError):
        channel.receive(wait_seconds=wait_seconds)


def test_what_the_front_sent_before_it_left_is_still_read(ends):
    front, channel = ends
    front.sendall(encode_frame(Shutdown()))
    front.close()
    assert channel.receive(wait_seconds=None) == [Shutdown()]


def test_a_front_that_left_cannot_be_answered(ends):
    front, channel = ends
    front.close()
    with pytest.raises(FrontGoneError):
        channel.send([Cancelled(segment_id=1)])


def test_a_reset_is_a_front_that_is_gone(ends):
    front, channel = ends
    channel.send([Cancelled(segment_id=1)])  # never read: closing resets the connection
    front.close()
    with pytest.raises(FrontGoneError):
        channel.receive(wait_seconds=None)


def test_nonsense_is_a_protocol_error(ends):
    front, channel = ends
    front.sendall(b"\x00\x00\x00\x01\xc1")
    with pytest.raises(ProtocolError):
        channel.receive(wait_seconds=None)


def test_leaving_the_channel_closes_the_socket():
    front, engine = socket.socketpair()
    with front:
        with EngineChannel(engine):
            pass
        assert front.recv(1) == b""
