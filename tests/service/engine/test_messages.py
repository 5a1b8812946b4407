import msgspec
import pytest
from msgspec import structs

from model.config import SearchConfig
from model.request import DecodeRequest, Hypothesis
from service.engine import messages
from service.engine.errors import ProtocolError
from service.engine.messages import (
    MAX_FRAME_BYTES,
    ROWS_BUCKETS,
    Cancel,
    Cancelled,
    Configure,
    EngineCounters,
    Failed,
    Finished,
    LoadedCheckpoint,
    Ready,
    SegmentTimings,
    Shutdown,
    StartFailed,
    Submit,
    SubmitSegment,
    Written,
    encode_frame,
    engine_messages,
    front_messages,
)

SEGMENT = SubmitSegment(
    segment_id=7,
    request=DecodeRequest(
        source_ids=(5, 6, 1),
        prefix_ids=(0, 9),
        search=SearchConfig(beam_size=3, num_hypotheses=2, stopping="first", with_alignment=True),
    ),
    priority="bulk",
)
FROM_FRONT = [
    Configure(checkpoint_paths=("somewhere",), num_threads=2, device="cpu"),
    Submit(segments=(SEGMENT,)),
    Cancel(segment_ids=(7, 8)),
    Shutdown(),
]
FROM_ENGINE = [
    Written(segment_id=7, start=2, token_ids=(11, 12)),
    Ready(
        protocol_version=1,
        device="cpu",
        num_threads=1,
        load_seconds=0.5,
        warmup_seconds=0.25,
        max_rows=16,
        max_slots=4,
        checkpoints=(
            LoadedCheckpoint(
                name="tiny",
                compute_type="int8",
                max_source_length=64,
                max_target_length=64,
                max_prefix_length=2,
            ),
        ),
    ),
    StartFailed(message="no such checkpoint directory"),
    Finished(
        segment_id=7,
        hypotheses=(
            Hypothesis(
                token_ids=(4, 5),
                score=-1.5,
                token_log_probs=(-0.5, -0.5, -0.5),
                is_truncated=False,
                alignment=(0, 1),
            ),
        ),
        timings=SegmentTimings(
            queue_seconds=0.1,
            first_step_seconds=0.2,
            decode_seconds=0.3,
            num_steps=3,
            priority="bulk",
            encode_seconds=0.05,
            arrived_at_seconds=12.5,
        ),
    ),
    Failed(segment_id=7, code="engine_error", message="it broke"),
    Cancelled(segment_id=7),
    EngineCounters(num_received=3, num_waiting=1, num_waiting_bulk=1, max_rows=16),
]


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


@pytest.mark.parametrize("message", FROM_FRONT, ids=lambda message: type(message).__name__)
def test_every_message_of_the_front_survives_the_socket(message):
    assert front_messages().feed(encode_frame(message)) == [message]


@pytest.mark.parametrize("message", FROM_ENGINE, ids=lambda message: type(message).__name__)
def test_every_message_of_the_engine_survives_the_socket(message):
    assert engine_messages().feed(encode_frame(message)) == [message]


def test_frames_may_arrive_byte_by_byte():
    reader = front_messages()
    data = b"".join(map(encode_frame, FROM_FRONT))
    received = [message for index in range(len(data)) for message in reader.feed(data[index:][:1])]
    assert received == FROM_FRONT


def test_frames_may_arrive_all_at_once_with_half_of_the_next():
    reader = engine_messages()
    data = b"".join(map(encode_frame, FROM_ENGINE))
    last = encode_frame(Cancelled(segment_id=1))
    assert reader.feed(data + last[:3]) == FROM_ENGINE
    assert reader.feed(last[3:]) == [Cancelled(segment_id=1)]


def test_a_search_that_cannot_run_is_refused_when_it_is_read():
    search = {"beam_size": 2, "num_hypotheses": 3}
    request = {"source_ids": [1], "prefix_ids": [0], "search": search}
    segment = {"segment_id": 1, "request": request}
    payload = msgspec.msgpack.encode({"type": "submit", "segments": [segment]})
    with pytest.raises(ProtocolError, match="num_hypotheses is 3"):
        front_messages().feed(framed(payload))


def test_a_priority_that_does_not_exist_is_refused_when_it_is_read():
    request = {"source_ids": [1], "prefix_ids": [0], "search": {}}
    segment = {"segment_id": 1, "request": request, "priority": "urgent"}
    payload = msgspec.msgpack.encode({"type": "submit", "segments": [segment]})
    with pytest.raises(ProtocolError, match="urgent"):
        front_messages().feed(framed(payload))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"temperature": 1.0}, "unknown field `temperature`"),
        ({"source_ids": ["1"]}, "Expected `int`, got `str`"),
        ({"source_ids": 1}, "Expected `array`, got `int`"),
        ({"search": []}, "Expected `object`, got `array`"),
        ({"search": {"beam_size": 0}}, "beam_size is 0"),
    ],
)
def test_a_request_is_read_as_strictly_as_its_envelope(change, complaint):
    request = {"source_ids": [1], "prefix_ids": [0], "search": {}} | change
    segment = {"segment_id": 1, "request": request}
    payload = msgspec.msgpack.encode({"type": "submit", "segments": [segment]})
    with pytest.raises(ProtocolError, match=complaint):
        front_messages().feed(framed(payload))


def test_suppressed_ids_cross_the_socket_where_there_are_any_and_cost_no_byte_where_not():
    constrained = structs.replace(SEGMENT.request, suppressed_ids=(3, 4))
    plain, asking = (
        encode_frame(Submit(segments=(structs.replace(SEGMENT, request=request),)))
        for request in (SEGMENT.request, constrained)
    )
    assert b"suppressed_ids" not in plain
    [submit] = front_messages().feed(asking)
    assert submit.segments[0].request == constrained


def test_a_hypothesis_is_read_as_strictly_as_its_envelope():
    hypothesis = {"token_ids": [], "score": 0.0, "token_log_probs": [0.0], "is_truncated": False}
    timings = {"queue_seconds": 0, "first_step_seconds": 0, "decode_seconds": 0, "num_steps": 1}

    def frame(**more: object) -> bytes:
        finished = {"segment_id": 1, "hypotheses": [hypothesis | more], "timings": timings}
        return framed(msgspec.msgpack.encode({"type": "finished"} | finished))

    assert len(engine_messages().feed(frame())) == 1
    with pytest.raises(ProtocolError, match="unknown field `text`"):
        engine_messages().feed(frame(text="?"))


@pytest.mark.parametrize(
    "value",
    [
        {"type": "cancel", "segment_ids": ["7"]},
        {"type": "cancel", "segment_ids": [True]},
        {"type": "cancel", "segment_ids": [7.5]},
        {"type": "cancel", "segment_ids": [7], "reason": "bored"},
        {"type": "cancel"},
        {"type": "unheard_of"},
        {"segment_ids": [7]},
        {"type": "configure", "checkpoint_paths": ["x"], "num_threads": 1, "device": "tpu"},
        [1, 2, 3],
    ],
)
def test_what_is_not_exactly_a_message_is_refused(value):
    with pytest.raises(ProtocolError, match="no message"):
        front_messages().feed(framed(msgspec.msgpack.encode(value)))


def test_bytes_that_are_not_msgpack_are_refused():
    with pytest.raises(ProtocolError, match="no message"):
        front_messages().feed(framed(b"\xc1\xc1\xc1"))


def test_a_reader_does_not_take_messages_of_the_other_direction():
    with pytest.raises(ProtocolError):
        front_messages().feed(encode_frame(Cancelled(segment_id=1)))


def test_an_oversize_frame_is_refused_from_its_length_alone():
    header = (MAX_FRAME_BYTES + 1).to_bytes(4, "big")
    with pytest.raises(ProtocolError, match=f"{MAX_FRAME_BYTES + 1} bytes; the limit is"):
        front_messages().feed(header)


def test_an_oversize_message_is_not_sent(monkeypatch):
    monkeypatch.setattr(messages, "MAX_FRAME_BYTES", 100)
    with pytest.raises(ProtocolError, match="the limit is 100"):
        encode_frame(StartFailed(message="x" * 101))


def test_counters_have_a_count_for_every_bucket_and_for_what_is_above():
    assert len(EngineCounters().rows_per_step) == len(ROWS_BUCKETS) + 1


def test_of_a_segment_that_nobody_watches_the_message_says_nothing_of_it() -> None:
    assert b"is_watched" not in encode_frame(Submit(segments=(SEGMENT,)))
    watched = structs.replace(SEGMENT, is_watched=True)
    assert b"is_watched" in encode_frame(Submit(segments=(watched,)))
