"""From the configuration to lanes that are warm: devices, limits, warm-up translations.

Owns what happens before the engine says Ready. What the lanes do then is their own
(`service.engine.lane`, `service.engine.runner`).
"""

from collections.abc import Callable
from pathlib import Path

import torch

from model.checkpoint.checksums import fingerprint
from model.checkpoint.manifest import Manifest
from model.config import SearchConfig
from model.decode.session import DecodeRequest, DecodingSession, SessionLimits
from model.errors import CheckpointError, ConfigError, DeviceError
from model.loading import Runnable, load_for_decoding
from service.engine.lane import Lane
from service.engine.messages import (
    PROTOCOL_VERSION,
    Configure,
    Device,
    LoadedCheckpoint,
    Ready,
)
from service.engine.runner import Runner
from service.engine.scheduler import Scheduler
from service.engine.totals import Totals

_WARMUP_TEXT = "1 2 3 4 5 6 7 8 9"
_WARMUP_LENGTH = 12
_WARMUP_BEAM = 4


def load_lanes(configure: Configure, *, clock: Callable[[], float]) -> tuple[list[Lane], Ready]:
    """Load the checkpoints and translate a little, so that no request pays for the first time.

    Raises:
        CheckpointError: A checkpoint is missing, damaged or inconsistent, or not the one that
            the front has read.
        DeviceError: The device is not there.
        UnsupportedVariantError: The fast decoding path does not run a network, or int8 is
            asked for and cannot be had.
        ConfigError: A limit of `configure` is impossible.
    """
    _check_limits(configure)
    device = resolve_device(configure.device)
    started = clock()
    checkpoints = [
        load_for_decoding(
            Path(path),
            device=device,
            compute_type=configure.compute_type,
            num_threads=configure.num_threads,
        )
        for path in configure.checkpoint_paths
    ]
    _check_unchanged(configure)
    is_int8 = all(checkpoint.compute_type == "int8" for checkpoint in checkpoints)
    # Beside the kernels' own threads torch has only small work, which more threads slow down.
    torch.set_num_threads(1 if is_int8 else configure.num_threads)
    loaded = clock()
    lanes = [_open_lane(checkpoint, configure, clock=clock) for checkpoint in checkpoints]
    ready = Ready(
        protocol_version=PROTOCOL_VERSION,
        device=str(device),
        num_threads=configure.num_threads,
        load_seconds=loaded - started,
        warmup_seconds=clock() - loaded,
        max_rows=configure.max_rows,
        max_slots=configure.max_slots,
        checkpoints=tuple(map(_described, checkpoints)),
    )
    return lanes, ready


def resolve_device(name: Device) -> torch.device:
    """The device to run on; "auto" is CUDA where there is one.

    Raises:
        DeviceError: CUDA is asked for and not there: running elsewhere would hide it.
    """
    has_cuda = torch.cuda.is_available()
    if name == "cuda" and not has_cuda:
        raise DeviceError("device is 'cuda', but torch finds no CUDA device")
    return torch.device("cuda" if has_cuda and name != "cpu" else "cpu")


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


def _check_unchanged(configure: Configure) -> None:
    """A front and an engine with different checkpoints would translate nonsense."""
    expected = configure.fingerprints
    if expected is None:
        return
    for path, wanted in zip(map(Path, configure.checkpoint_paths), expected, strict=True):
        if fingerprint(path) != wanted:
            raise CheckpointError(path, "was replaced since it was read; a reload reads it again")


def _open_lane(checkpoint: Runnable, configure: Configure, *, clock: Callable[[], float]) -> Lane:
    tokens = checkpoint.manifest.tokens
    limits = _session_limits(checkpoint.manifest, configure)
    totals = Totals()
    runner = Runner(
        lambda: DecodingSession(checkpoint.network, tokens=tokens, limits=limits),
        totals=totals,
        clock=clock,
    )
    for requests in _warmup_batches(checkpoint, limits):
        runner.warm_up(requests)
    scheduler = Scheduler(
        max_rows=limits.max_rows,
        max_slots=limits.max_slots,
        reserved_share=configure.reserved_share,
    )
    return Lane(
        scheduler, runner, totals=totals, max_rows=limits.max_rows, max_slots=limits.max_slots
    )


def _prefix_length(manifest: Manifest) -> int:
    """The start token and the longest forced prefix."""
    return 1 + max(len(pair.target_prefix) for pair in manifest.pairs)


def _session_limits(manifest: Manifest, configure: Configure) -> SessionLimits:
    """The manifest's lengths, with room for the longest prefix."""
    return SessionLimits(
        max_rows=configure.max_rows,
        max_slots=configure.max_slots,
        max_source_length=manifest.limits.max_source_length,
        max_target_length=manifest.limits.max_target_length + _prefix_length(manifest),
    )


def _described(checkpoint: Runnable) -> LoadedCheckpoint:
    limits = checkpoint.manifest.limits
    return LoadedCheckpoint(
        name=checkpoint.manifest.name,
        compute_type=checkpoint.compute_type,
        max_source_length=limits.max_source_length,
        max_target_length=limits.max_target_length,
        max_prefix_length=_prefix_length(checkpoint.manifest),
    )


def _warmup_batches(checkpoint: Runnable, limits: SessionLimits) -> list[list[DecodeRequest]]:
    """One greedy sentence, one beam, and as many beams as there is room for."""
    pair = checkpoint.manifest.pairs[0]
    source_ids = checkpoint.tokenizer.encode(_WARMUP_TEXT, pair)[-limits.max_source_length :]
    prefix_ids = checkpoint.tokenizer.target_prefix(pair)
    max_length = min(_WARMUP_LENGTH, checkpoint.manifest.limits.max_target_length)
    beam_size = min(_WARMUP_BEAM, limits.max_rows)

    def request(beam_size: int) -> DecodeRequest:
        return DecodeRequest(
            source_ids=tuple(source_ids),
            prefix_ids=tuple(prefix_ids),
            search=SearchConfig(beam_size=beam_size, max_length=max_length),
        )

    num_beams = min(limits.max_slots, limits.max_rows // beam_size)
    return [[request(1)], [request(beam_size)], [request(beam_size)] * num_beams]
