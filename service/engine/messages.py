"""Messages between the front and the engine: typed, versioned, framed.

Owns the messages, their limits and the framing (4 bytes of big-endian length, then
msgpack). Does no I/O and imports no torch. Decoding is strict: an unknown message, an
unknown field or a wrong type is a `ProtocolError`, never a guess.

A conversation: `Configure` → `Ready` or `StartFailed`; then `Submit` and `Cancel` go in and
every submitted segment gets exactly one final answer: `Finished`, `Failed` or `Cancelled`. Before
that, one that is watched has its tokens told as it gets them: `Written`.
`EngineCounters` come now and then whether there is work or not: the engine's sign of life.
"""

from typing import Any, Generic, Literal, TypeVar

import msgspec

from model.arithmetic import ComputeReason, ComputeType
from model.errors import ConfigError
from model.request import DecodeRequest, Hypothesis
from service.engine.errors import ProtocolError
from service.priority import Priority

PROTOCOL_VERSION = 12
MAX_FRAME_BYTES = 16 * 1024 * 1024
ROWS_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)

_LENGTH_BYTES = 4

Device = Literal["auto", "cpu", "cuda"]
LogLevel = Literal["debug", "info", "warning", "error"]


class _Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of everything that crosses the socket."""


class Configure(_Message, frozen=True, kw_only=True, tag="configure"):
    """The first message in: what to load and how much of it may run at once.

    Attributes:
        checkpoint_paths: Directories of the checkpoints; a segment names one by its place here.
        fingerprints: What exactly the front has read there; None takes what is found.
        num_threads: Threads of the network; leave a core to the front.
        processors: Those that the engine is to run on; None leaves that to the system.
        visible_device: Value of `CUDA_VISIBLE_DEVICES` that the engine is started with, where each
            has a device of its own.
        device: "auto" takes CUDA when there is one; "cuda" without one fails the start.
        compute_type: Arithmetic of the network; one that is missing fails the start.
        shortlist: Whether sentences choose from the checkpoints' lexical shortlists; a checkpoint
            without one fails the start.
        packed_folder: Where packed int8 weights are kept for all engines; None keeps none.
        packed_bytes: How much may be kept there.
        max_rows: Beam rows of one checkpoint's session, all segments together.
        max_slots: Segments in one checkpoint's session.
        admit_token_budget: Padded source tokens encoded between two steps, at most: measured
            times may allow less.
        reserved_share: Of the rows and slots, those that bulk leaves to interactive segments.
        beam_size: Of a request that names none; the engine is made warm for it.
        counters_interval_seconds: Shortest time between two `EngineCounters` while busy.
        heartbeat_seconds: Longest time between two `EngineCounters` while idle.
        log_level: Least severe line the engine logs.
        protocol_version: What the front speaks.
    """

    checkpoint_paths: tuple[str, ...]
    fingerprints: tuple[str, ...] | None = None
    num_threads: int
    processors: tuple[int, ...] | None = None
    visible_device: str | None = None
    device: Device = "auto"
    compute_type: ComputeType = "auto"
    shortlist: bool = False
    packed_folder: str | None = None
    packed_bytes: int = 0
    max_rows: int = 128
    max_slots: int = 64
    admit_token_budget: int = 1024
    reserved_share: float = 0.25
    beam_size: int = 4
    counters_interval_seconds: float = 0.25
    heartbeat_seconds: float = 1.0
    log_level: LogLevel = "info"
    protocol_version: int = PROTOCOL_VERSION


class SubmitSegment(_Message, frozen=True, kw_only=True, omit_defaults=True):
    """The envelope of one segment's request.

    Attributes:
        segment_id: The front's number for it, never used twice.
        request: What is to be searched.
        priority: The class it waits in.
        checkpoint: Which one translates it: its place in `Configure.checkpoint_paths`.
        client: Whose it is, as a number that says nothing of them: clients share evenly.
        submission: The client's submission that it belongs to.
        submission_work: Rows × source tokens of all segments of that submission.
        is_watched: Its tokens are told as it gets them; of a search with one beam.
    """

    segment_id: int
    request: DecodeRequest
    priority: Priority = "interactive"
    checkpoint: int = 0
    client: int = 0
    submission: int = 0
    submission_work: int = 0
    is_watched: bool = False


class Submit(_Message, frozen=True, kw_only=True, tag="submit"):
    """Segments that join the queue, in this order."""

    segments: tuple[SubmitSegment, ...]


class Cancel(_Message, frozen=True, kw_only=True, tag="cancel"):
    """Cancellation of segments; those already answered are ignored."""

    segment_ids: tuple[int, ...]


class Shutdown(_Message, frozen=True, kw_only=True, tag="shutdown"):
    """Leave at once, whatever runs."""


class LoadedCheckpoint(_Message, frozen=True, kw_only=True):
    """A checkpoint that is warm.

    Attributes:
        name: Its own name.
        compute_type: Arithmetic in use: "int8", "float32" or "bfloat16".
        compute_reason: Why it is this one.
        compute_problem: What stands in the way of a faster one, in words; empty if nothing does.
        instruction_set: What its int8 kernels are compiled for; empty without int8.
        max_source_length: Source tokens of a segment, with EOS.
        max_target_length: Target tokens of a segment, with EOS.
        max_prefix_length: Start token and forced tags of a segment.
    """

    name: str
    compute_type: str
    compute_reason: ComputeReason = "best"
    compute_problem: str = ""
    instruction_set: str = ""
    max_source_length: int
    max_target_length: int
    max_prefix_length: int

    @property
    def is_slow(self) -> bool:
        """A slower arithmetic than this kind of device can have, which was not asked for."""
        return self.compute_reason not in ("best", "asked_for")


class Ready(_Message, frozen=True, kw_only=True, tag="ready"):
    """The first message out: every network is loaded and warm.

    Attributes:
        protocol_version: What the engine speaks.
        device: Device in use, as torch names it.
        num_threads: Threads in use.
        load_seconds: Time to load the checkpoints.
        warmup_seconds: Time of the warm-up translations.
        max_rows: Beam rows in a session; the widest beam.
        max_slots: Segments in a session.
        checkpoints: In the order of `Configure.checkpoint_paths`.
    """

    protocol_version: int
    device: str
    num_threads: int
    load_seconds: float
    warmup_seconds: float
    max_rows: int
    max_slots: int
    checkpoints: tuple[LoadedCheckpoint, ...]


class StartFailed(_Message, frozen=True, kw_only=True, tag="start_failed"):
    """The first message out when the engine cannot serve; it leaves after it.

    Attributes:
        message: Why, for people.
        at_fault: Checkpoints without which it might serve: place in `Configure.checkpoint_paths`
            and reason.
        shortages: Of those for which there is no memory: place, bytes that it takes at least, and
            bytes that there were, if that is known.
    """

    message: str
    at_fault: tuple[tuple[int, str], ...] = ()
    shortages: tuple[tuple[int, int, int | None], ...] = ()


class SegmentTimings(_Message, frozen=True, kw_only=True):
    """Times of a segment in the engine.

    Attributes:
        queue_seconds: From arrival to being encoded.
        first_step_seconds: From arrival to the end of its first decoding step.
        decode_seconds: From the end of the wait to its last step, encoding included.
        num_steps: Decoding steps it took part in.
        priority: The class it waited in.
        encode_seconds: Of `decode_seconds`, the time of the encoder batch it was part of.
        arrived_at_seconds: When it arrived, on the machine's monotonic clock: the same one in
            both processes.
    """

    queue_seconds: float
    first_step_seconds: float
    decode_seconds: float
    num_steps: int
    priority: Priority = "interactive"
    encode_seconds: float = 0.0
    arrived_at_seconds: float = 0.0


class Written(_Message, frozen=True, kw_only=True, tag="written"):
    """Tokens that a watched segment has got since the last message of it.

    Attributes:
        segment_id: Which one.
        start: How many tokens stand before them; fewer than were told where its search, or
            another engine's, began anew.
        token_ids: They, without prefix and EOS, at least one.
    """

    segment_id: int
    start: int
    token_ids: tuple[int, ...]


class Finished(_Message, frozen=True, kw_only=True, tag="finished"):
    """A segment's translations, best first."""

    segment_id: int
    hypotheses: tuple[Hypothesis, ...]
    timings: SegmentTimings


class Failed(_Message, frozen=True, kw_only=True, tag="failed"):
    """A segment the engine gave up; `code` is a constant, `message` quotes no text."""

    segment_id: int
    code: str
    message: str


class Cancelled(_Message, frozen=True, kw_only=True, tag="cancelled"):
    """A segment has left the engine because it was cancelled."""

    segment_id: int


class EngineTotals(msgspec.Struct, kw_only=True):
    """Totals of an engine since its start, which never go down.

    The engine's process adds to its own; what it sends, `EngineCounters`, cannot be changed.

    Attributes:
        num_received: Segments submitted; the sum of finished, cancelled, failed, waiting
            and running ones.
        num_admitted: Segments encoded.
        num_finished: Segments translated.
        num_cancelled: Segments cancelled, waiting or running.
        num_failed: Segments given up.
        num_admissions: Encoder batches.
        admit_seconds: Time spent in them.
        num_steps: Decoding steps.
        step_seconds: Time spent in them.
        num_row_steps: Rows summed over the steps.
        rows_per_step: Steps by their number of rows: one count per upper bound in
            `ROWS_BUCKETS`, not cumulative, then the steps above the last bound.
        num_source_tokens: Source tokens encoded.
        num_padded_source_tokens: The same with what the encoder was padded with, if it was.
        num_target_tokens: Target tokens of finished segments' best hypotheses, with EOS.
    """

    num_received: int = 0
    num_admitted: int = 0
    num_finished: int = 0
    num_cancelled: int = 0
    num_failed: int = 0
    num_admissions: int = 0
    admit_seconds: float = 0.0
    num_steps: int = 0
    step_seconds: float = 0.0
    num_row_steps: int = 0
    rows_per_step: tuple[int, ...] = (0,) * (len(ROWS_BUCKETS) + 1)
    num_source_tokens: int = 0
    num_padded_source_tokens: int = 0
    num_target_tokens: int = 0


class EngineCounters(  # type: ignore[misc]  # frozen beside a base that is not: msgspec allows it
    _Message, EngineTotals, frozen=True, kw_only=True, tag="counters"
):
    """Counters of an engine, its checkpoints together: totals, and gauges of this moment.

    Attributes:
        num_waiting: Segments now in the queues, or that wait for another try.
        num_waiting_bulk: Of these, those of the class bulk.
        num_running: Segments in the session now.
        num_rows: Rows in use now.
        num_slots: Slots in use now.
        max_rows: Rows there are.
        max_slots: Slots there are.
    """

    num_waiting: int = 0
    num_waiting_bulk: int = 0
    num_running: int = 0
    num_rows: int = 0
    num_slots: int = 0
    max_rows: int = 0
    max_slots: int = 0

    def totals(self) -> dict[str, Any]:
        """The totals alone, by their names."""
        return {name: getattr(self, name) for name in EngineTotals.__struct_fields__}


FrontMessage = Configure | Submit | Cancel | Shutdown
EngineMessage = Ready | StartFailed | Written | Finished | Failed | Cancelled | EngineCounters
MessageT = TypeVar("MessageT")


def encode_frame(message: msgspec.Struct) -> bytes:
    """The message as one frame.

    Raises:
        ProtocolError: It is larger than `MAX_FRAME_BYTES`.
    """
    payload = msgspec.msgpack.encode(message)
    _check_size(len(payload))
    return len(payload).to_bytes(_LENGTH_BYTES, "big") + payload


def _check_size(num_bytes: int) -> None:
    if num_bytes > MAX_FRAME_BYTES:
        raise ProtocolError(f"a frame has {num_bytes} bytes; the limit is {MAX_FRAME_BYTES}")


class FrameReader(Generic[MessageT]):
    """Reader of messages from whatever pieces the socket gives.

    Holds at most one incomplete frame, so at most `MAX_FRAME_BYTES` and one read.
    """

    def __init__(self, decoder: msgspec.msgpack.Decoder[MessageT]) -> None:
        self._decoder = decoder
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[MessageT]:
        """Messages that `data` completes, in order.

        Raises:
            ProtocolError: A frame is too large or is no message of this direction.
        """
        self._buffer += data
        messages = []
        while (payload := self._take_payload()) is not None:
            messages.append(self._decode(payload))
        return messages

    def _take_payload(self) -> bytes | None:
        if len(self._buffer) < _LENGTH_BYTES:
            return None
        num_bytes = int.from_bytes(self._buffer[:_LENGTH_BYTES], "big")
        _check_size(num_bytes)
        end = _LENGTH_BYTES + num_bytes
        if len(self._buffer) < end:
            return None
        payload = bytes(self._buffer[_LENGTH_BYTES:end])
        del self._buffer[:end]
        return payload

    def _decode(self, payload: bytes) -> MessageT:
        try:
            return self._decoder.decode(payload)
        except (msgspec.DecodeError, ConfigError) as error:
            raise ProtocolError(
                f"a frame of {len(payload)} bytes is no message: {error}"
            ) from error


def front_messages() -> FrameReader[FrontMessage]:
    """A reader of what the front sends."""
    return FrameReader(msgspec.msgpack.Decoder(FrontMessage))


def engine_messages() -> FrameReader[EngineMessage]:
    """A reader of what the engine sends."""
    return FrameReader(msgspec.msgpack.Decoder(EngineMessage))
