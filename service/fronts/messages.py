"""Messages between the owner and its fronts: typed and framed as those of engines are.

Owns the messages. Whoever asks numbers what it asks; a number is answered once. Does no I/O; what
is done with them is `service.fronts.leases` on the owner's side, `service.fronts.link` on a
front's.

A conversation: `Begin` goes to a front; then `Deploy`, answered by `Prepared`, and `Serve`,
answered by `Serving`, whenever there are other deployments. A front asks for a place with `Claim`
and gives it back with `Release`; `SubmitJobs` is answered by one `Answered` for each job, or by
one `Refused`; where jobs are watched, `WrittenTo` tells their tokens before that. `AskFigures`,
every second, is answered by `Figures`: a front that is silent for long is killed.
"""

from typing import Any

import msgspec

from service.access.keys import KeyRing
from service.engine.client.submission import SegmentJob
from service.engine.messages import Finished, FrameReader, Ready
from service.priority import Priority
from service.telemetry.merging import Family


class _Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of everything that crosses the socket."""


class Trouble(_Message, frozen=True, kw_only=True):
    """An error that was foreseen, as `service.fronts.troubles` reads it."""

    kind: str
    message: str
    status: int = 0
    code: str = ""
    value: str | int | float | bool | None = None
    limit: str | int | float | bool | None = None
    retry_after_seconds: float | None = None


class Place(_Message, frozen=True, kw_only=True):
    """A checkpoint's directory, and what exactly was read there."""

    directory: str
    fingerprint: str


class Fault(_Message, frozen=True, kw_only=True):
    """A directory that cannot be served, and why."""

    directory: str
    reason: str


class Begin(_Message, frozen=True, kw_only=True, tag="begin"):
    """The first message to a front.

    Attributes:
        settings: Of the server, as JSON would have them; secrets in clear.
        max_connections: Its part of the connections that may be open.
        keys: Those that hold, by their hashes; None where the server is open.
    """

    settings: dict[str, Any]
    max_connections: int
    keys: KeyRing | None


class Deploy(_Message, frozen=True, kw_only=True, tag="deploy"):
    """The checkpoints of the next deployment.

    Attributes:
        generation: Its number.
        usable: Checkpoints, in the order of the engine.
        unloaded: Those that are left out.
        faulty: Those that cannot be served.
        left_out: Names that are not served.
        ready: What the engine says of itself.
        max_request_segments: Segments of one request that may be pending.
    """

    generation: int
    usable: tuple[Place, ...]
    unloaded: tuple[Place, ...]
    faulty: tuple[Fault, ...]
    left_out: tuple[str, ...]
    ready: Ready
    max_request_segments: int


class Serve(_Message, frozen=True, kw_only=True, tag="serve"):
    """The deployment that is served from now on.

    Attributes:
        generation: Its number.
        kept: Numbers of earlier ones that the owner still serves for what this one could not load.
    """

    generation: int
    kept: tuple[int, ...] = ()


class Replied(_Message, frozen=True, kw_only=True, tag="replied"):
    """The answer to a front's numbered request.

    Attributes:
        number: What it asked.
        seconds: Time until more may be spent; None: it was spent.
        entries: Source, target and case of terms.
        trouble: Why not.
    """

    number: int
    seconds: float | None = None
    entries: tuple[tuple[str, str, bool], ...] = ()
    trouble: Trouble | None = None


class Answered(_Message, frozen=True, kw_only=True, tag="answered"):
    """The answer to one job of a submission, by its place there."""

    number: int
    place: int
    finished: Finished | None = None
    trouble: Trouble | None = None


class WrittenTo(_Message, frozen=True, kw_only=True, tag="written_to"):
    """Tokens of one job of a submission, as of `service.engine.messages.Written`."""

    number: int
    place: int
    start: int
    token_ids: tuple[int, ...]


class Refused(_Message, frozen=True, kw_only=True, tag="refused"):
    """A submission of which nothing was accepted."""

    number: int
    trouble: Trouble


class AskFigures(_Message, frozen=True, kw_only=True, tag="ask_figures"):
    """Request for a front's figures; also a heartbeat, to which `Figures` is the reply."""

    number: int


class ReloadKeys(_Message, frozen=True, kw_only=True, tag="reload_keys"):
    """Read the files of keys again."""


class Drain(_Message, frozen=True, kw_only=True, tag="drain"):
    """Accept nothing more."""


class Leave(_Message, frozen=True, kw_only=True, tag="leave"):
    """Write the answers that are there, and end.

    Attributes:
        is_hurried: Whether clients that do not read theirs are left at once.
    """

    is_hurried: bool = False


class Prepared(_Message, frozen=True, kw_only=True, tag="prepared"):
    """Reply to `Deploy`: whether a front has read exactly those checkpoints."""

    generation: int
    is_read: bool


class Serving(_Message, frozen=True, kw_only=True, tag="serving"):
    """Reply to `Serve`: whether a front serves that deployment, with all that is kept; else none.

    Attributes:
        generation: The deployment's number.
        is_serving: The front has read it, and serves what the owner keeps.
    """

    generation: int
    is_serving: bool


class Claim(_Message, frozen=True, kw_only=True, tag="claim"):
    """Request for a place in the server's bound of requests.

    Attributes:
        number: Of the place.
        checkpoints: The names of those that it goes through.
        generations: The deployment of each.
        priority: Its class.
    """

    number: int
    checkpoints: tuple[str, ...]
    generations: tuple[int, ...]
    priority: Priority


class Release(_Message, frozen=True, kw_only=True, tag="release"):
    """A place that is not needed any more."""

    number: int


class SubmitJobs(_Message, frozen=True, kw_only=True, tag="submit_jobs"):
    """Segments of one request for the engines of a deployment.

    Attributes:
        number: Of the submission.
        generation: The deployment.
        client: Whose they are.
        jobs: The segments.
        are_watched: Their tokens are told as they get them.
    """

    number: int
    generation: int
    client: int
    jobs: tuple[SegmentJob, ...]
    are_watched: bool = False


class Drop(_Message, frozen=True, kw_only=True, tag="drop"):
    """Cancellation of the rest of a submission."""

    number: int


class Spend(_Message, frozen=True, kw_only=True, tag="spend"):
    """Request for a part of a caller's limit a minute."""

    number: int
    kind: str
    identity: str
    limit: int
    cost: int


class Count(_Message, frozen=True, kw_only=True, tag="count"):
    """Characters that a caller has translated."""

    identity: str
    num_characters: int


class AskTerms(_Message, frozen=True, kw_only=True, tag="ask_terms"):
    """Request for the terms of a caller's glossaries for two languages."""

    number: int
    owner: str
    glossary_ids: tuple[str, ...]
    source: str
    target: str


class Figures(_Message, frozen=True, kw_only=True, tag="figures"):
    """A front's counts so far."""

    number: int
    families: tuple[Family, ...]


OwnerMessage = (
    Begin
    | Deploy
    | Serve
    | Replied
    | WrittenTo
    | Answered
    | Refused
    | AskFigures
    | ReloadKeys
    | Drain
    | Leave
)
FrontMessage = (
    Prepared | Serving | Claim | Release | SubmitJobs | Drop | Spend | Count | AskTerms | Figures
)


def owner_messages() -> FrameReader[OwnerMessage]:
    """A reader of what the owner sends."""
    return FrameReader(msgspec.msgpack.Decoder(OwnerMessage))


def front_messages() -> FrameReader[FrontMessage]:
    """A reader of what a front sends."""
    return FrameReader(msgspec.msgpack.Decoder(FrontMessage))
