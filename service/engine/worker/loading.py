"""Loading of checkpoints into lanes: devices, limits, warm-up translations.

Owns what happens before the engine says Ready. What the lanes do then is their own
(`service.engine.worker.lane`, `service.engine.worker.runner`).
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.files.checksums import fingerprint
from model.checkpoint.manifest import CONFIG_FILE, Manifest
from model.config import SearchConfig
from model.decode.backends.opening import cache_tables
from model.decode.footprint import (
    CacheTables,
    cache_bytes,
    check_footprint,
    fitting_rows,
    least_limits,
    session_limits,
    table_bytes,
    working_bytes,
)
from model.decode.session import DecodeRequest, DecodingSession, SessionLimits
from model.errors import (
    CheckpointError,
    ConfigError,
    DecodingError,
    DragomanError,
    MemoryShortageError,
)
from model.loading import Runnable, automatic_compute_type, load_for_decoding
from model.native.packed_folder import PackedFolder
from model.system.devices import free_bytes, memory_limit, resolve_device, use_unplanned_attention
from model.system.shortage import reporting_shortage
from model.text.languages.tags import LanguagePair
from service.engine.errors import CheckpointsError, Shortage
from service.engine.messages import (
    PROTOCOL_VERSION,
    Configure,
    LoadedCheckpoint,
    Ready,
)
from service.engine.worker.lane import Lane
from service.engine.worker.pacing import Pacing
from service.engine.worker.runner import Runner
from service.engine.worker.scheduler import Scheduler
from service.engine.worker.totals import Totals

_LOGGER = logging.getLogger(__name__)

_WARMUP_TEXT = "1 2 3 4 5 6 7 8 9"
_WARMUP_LENGTH = 12
_BRIEF_LENGTH = 2
"""One token that the network chooses, and the end."""

_One = TypeVar("_One")
_Done = TypeVar("_Done")


def load_lanes(configure: Configure, *, clock: Callable[[], float]) -> tuple[list[Lane], Ready]:
    """Load the checkpoints and translate a little, so that no request pays for the first time.

    Raises:
        CheckpointsError: Checkpoints are missing, damaged or inconsistent, not the ones that the
            front has read, or give no finite score; or the fast decoding path does not run a
            network, or int8 is asked for and cannot be had; or there is no memory for one.
        DeviceError: The device is not there.
        ConfigError: A limit of `configure` is impossible.
    """
    _check_limits(configure)
    device = resolve_device(configure.device)
    use_unplanned_attention(device)
    started = clock()
    _check_footprints(configure, memory_limit(device), device=device)
    places = range(len(configure.checkpoint_paths))
    checkpoints = _for_each(places, lambda place: _load(configure, place, device))
    loaded = clock()
    lanes = _for_each(
        zip(configure.checkpoint_paths, checkpoints, strict=True),
        lambda one: _open_lane(Path(one[0]), one[1], configure, device=device, clock=clock),
    )
    _log_rows(checkpoints, configure, free_bytes(device))
    ready = Ready(
        protocol_version=PROTOCOL_VERSION,
        device=device,
        num_threads=configure.num_threads,
        load_seconds=loaded - started,
        warmup_seconds=clock() - loaded,
        max_rows=configure.max_rows,
        max_slots=configure.max_slots,
        checkpoints=tuple(map(_described, checkpoints)),
    )
    return lanes, ready


def _check_limits(configure: Configure) -> None:
    if not configure.checkpoint_paths:
        raise ConfigError("checkpoint_paths is empty; it must name at least 1")
    for name in ("num_threads", "max_rows", "max_slots", "admit_token_budget"):
        value = getattr(configure, name)
        if value < 1:
            raise ConfigError(f"{name} is {value}; it must be at least 1")
    if not 0.0 <= configure.reserved_share < 1.0:
        raise ConfigError(
            f"reserved_share is {configure.reserved_share:g}; it must be at least 0 and below 1"
        )


def _for_each(checkpoints: Iterable[_One], do: Callable[[_One], _Done]) -> list[_Done]:
    """What `do` makes of each checkpoint.

    Raises:
        CheckpointsError: All for which it raised a foreseen error.
    """
    done, at_fault, shortages = [], {}, {}
    for place, one in enumerate(checkpoints):
        try:
            done.append(do(one))
        except DragomanError as error:
            at_fault[place] = str(error)
            if isinstance(error, MemoryShortageError):
                shortages[place] = Shortage(
                    needed_bytes=error.needed_bytes, free_bytes=error.free_bytes
                )
    if at_fault:
        raise CheckpointsError(at_fault, shortages=shortages)
    return done


def _load(configure: Configure, place: int, device: str) -> Runnable:
    """A checkpoint; a front and an engine with different ones would translate nonsense."""
    path = Path(configure.checkpoint_paths[place])
    checkpoint = load_for_decoding(
        path,
        device=device,
        compute_type=configure.compute_type,
        with_shortlist=configure.shortlist,
        num_threads=configure.num_threads,
        packed_folder=_packed_folder(configure),
    )
    expected = configure.fingerprints
    if expected is not None and fingerprint(path) != expected[place]:
        raise CheckpointError(path, "was replaced since it was read; a reload reads it again")
    return checkpoint


def _packed_folder(configure: Configure) -> PackedFolder | None:
    if configure.packed_folder is None:
        return None
    return PackedFolder(path=Path(configure.packed_folder), max_bytes=configure.packed_bytes)


def _check_footprints(configure: Configure, limit: int | None, *, device: str) -> None:
    """Refuse checkpoints whose limits ask for more memory than the ones before them leave.

    On a GPU a session takes memory as sentences need it, so only the least is asked for.
    """
    num_left = limit

    def check(directory: str) -> None:
        nonlocal num_left
        path = Path(directory)
        manifest = read_manifest(path, verify=False)  # loading verifies
        limits = _session_limits(manifest, configure)
        try:
            num_bytes = check_footprint(
                manifest,
                least_limits(limits) if device == "cuda" else limits,
                num_left,
                with_shortlist=configure.shortlist,
                tables=_cache_tables(manifest, configure, device=device),
            )
        except ConfigError as error:
            raise CheckpointError(
                path / CONFIG_FILE,
                f"{error}; DRAGOMAN_MAX_ROWS and DRAGOMAN_MAX_SLOTS make caches smaller",
            ) from error
        num_left = None if num_left is None else num_left - num_bytes

    _for_each(configure.checkpoint_paths, check)


def _cache_tables(manifest: Manifest, configure: Configure, *, device: str) -> CacheTables:
    compute_type = configure.compute_type
    if compute_type == "auto":
        compute_type = automatic_compute_type(manifest, device)
    return cache_tables(manifest.network, compute_type=compute_type, device=device)


def _open_lane(
    directory: Path,
    checkpoint: Runnable,
    configure: Configure,
    *,
    device: str,
    clock: Callable[[], float],
) -> Lane:
    tokens = checkpoint.manifest.tokens
    limits = _session_limits(checkpoint.manifest, configure)
    totals = Totals()
    runner = Runner(
        lambda: DecodingSession(
            checkpoint.network, tokens=tokens, limits=limits, shortlist=checkpoint.shortlist
        ),
        totals=totals,
        clock=clock,
        pacing=Pacing(is_launched=device == "cuda"),
    )
    least = table_bytes(checkpoint.manifest, limits)
    if device == "cuda":
        least += cache_bytes(checkpoint.manifest, least_limits(limits))
    try:
        with reporting_shortage(directory, least, device=device):
            for requests in _warmup_batches(
                checkpoint, limits, beam_size=configure.beam_size, is_recorded=device == "cuda"
            ):
                runner.warm_up(requests)
    except DecodingError as error:
        weights = directory / checkpoint.manifest.files.weights
        raise CheckpointError(
            weights, f"cannot be served: a first translation has {error}"
        ) from error
    scheduler = Scheduler(
        max_rows=limits.max_rows,
        max_slots=limits.max_slots,
        reserved_share=configure.reserved_share,
    )
    return Lane(
        scheduler, runner, totals=totals, max_rows=limits.max_rows, max_slots=limits.max_slots
    )


def _log_rows(checkpoints: Sequence[Runnable], configure: Configure, num_free: int | None) -> None:
    """Say how many rows at most fit into what is left on a GPU, which may be fewer than allowed.

    What encoding takes is left out. Checkpoints share the rest: each is told as if the others were
    not used.
    """
    if num_free is None:
        return
    for checkpoint in checkpoints:
        manifest = checkpoint.manifest
        limits = _session_limits(manifest, configure)
        num_left = max(0, num_free - working_bytes(manifest.network))
        longest = max(limits.max_source_length, limits.max_target_length)
        fields = {
            "checkpoint": manifest.name,
            "free_bytes": num_free,
            "max_rows": limits.max_rows,
            "rows_of_longest": fitting_rows(manifest, limits, num_left, num_tokens=longest),
            "rows_of_64_tokens": fitting_rows(manifest, limits, num_left, num_tokens=64),
        }
        _LOGGER.info("gpu_rows", extra={"fields": fields})


def _session_limits(manifest: Manifest, configure: Configure) -> SessionLimits:
    return session_limits(manifest, max_rows=configure.max_rows, max_slots=configure.max_slots)


def _described(checkpoint: Runnable) -> LoadedCheckpoint:
    limits = checkpoint.manifest.limits
    return LoadedCheckpoint(
        name=checkpoint.manifest.name,
        compute_type=checkpoint.compute_type,
        compute_reason=checkpoint.compute_reason,
        compute_problem=checkpoint.compute_problem,
        instruction_set=checkpoint.instruction_set,
        max_source_length=limits.max_source_length,
        max_target_length=limits.max_target_length,
        max_prefix_length=checkpoint.manifest.max_prefix_length,
    )


def _warmup_batches(
    checkpoint: Runnable, limits: SessionLimits, *, beam_size: int, is_recorded: bool
) -> Iterator[list[DecodeRequest]]:
    """As many beams as there is room for, one beam, one greedy sentence; every prefix, briefly.

    Where steps are recorded for numbers of sentences, `is_recorded`, beams of all of these, the
    largest first: what is recorded later then finds its memory among what was recorded before.
    There other programs align, so both searches come with an alignment too.
    """
    max_target_length = checkpoint.manifest.limits.max_target_length
    beam_size = min(beam_size, limits.max_rows)

    def request(
        pair: LanguagePair, *, beam_size: int, max_length: int, with_alignment: bool = False
    ) -> DecodeRequest:
        source_ids = checkpoint.tokenizer.encode(_WARMUP_TEXT, pair)
        return DecodeRequest(
            source_ids=tuple(source_ids[-limits.max_source_length :]),
            prefix_ids=tuple(checkpoint.tokenizer.target_prefix(pair)),
            search=SearchConfig(
                beam_size=beam_size,
                max_length=min(max_length, max_target_length),
                with_alignment=with_alignment,
            ),
        )

    first, *others = _pairs_with_every_prefix(checkpoint.manifest.pairs)
    beam = request(first, beam_size=beam_size, max_length=_WARMUP_LENGTH)
    most = min(limits.max_slots, limits.max_rows // beam_size)
    for count in recorded_counts(most) if is_recorded else (most, 1):
        yield [beam] * count
    yield [request(first, beam_size=1, max_length=_WARMUP_LENGTH)]
    if is_recorded:
        for size in (beam_size, 1):
            yield [request(first, beam_size=size, max_length=_BRIEF_LENGTH, with_alignment=True)]
    at_once = min(limits.max_slots, limits.max_rows)
    for begin in range(0, len(others), at_once):
        yield [
            request(pair, beam_size=1, max_length=_BRIEF_LENGTH)
            for pair in others[begin : begin + at_once]
        ]


def recorded_counts(most: int) -> list[int]:
    """Numbers of sentences that steps are recorded for, down to 1: 24, 16, 12, 8, 6, 4, 3, 2, 1."""
    powers = [1 << exponent for exponent in range(most.bit_length())]
    sizes = {size for power in powers for size in (power, power * 3 // 2) if size <= most}
    return sorted(sizes | {most}, reverse=True)


def _pairs_with_every_prefix(pairs: Sequence[LanguagePair]) -> list[LanguagePair]:
    """The first pair, and of the others each that has a prefix which none before it has."""
    chosen: list[LanguagePair] = []
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for pair in pairs:
        prefixes = {("source", pair.source_start), ("target", pair.target_prefix)}
        if prefixes - seen:
            chosen.append(pair)
        seen |= prefixes
    return chosen
