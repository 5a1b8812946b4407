"""Opening of a translator: a checkpoint that the machine has the memory for, loaded to decode.

Owns what commands and workers of bulk jobs do alike before the first text.
"""

from pathlib import Path

from model.checkpoint.manifest import CONFIG_FILE
from model.decode.backends.opening import cache_tables
from model.decode.footprint import check_footprint, session_limits
from model.errors import CheckpointError, ConfigError
from model.loading import Runnable
from model.offline.translator import Translator
from model.system.devices import memory_limit


def opened_translator(
    directory: Path, checkpoint: Runnable, *, device: str, max_rows: int
) -> Translator:
    """A translator of a checkpoint, if the machine has the memory that it asks for.

    Args:
        directory: Where it was loaded from.
        checkpoint: As it was loaded.
        device: Where it was loaded to.
        max_rows: Beam rows that run at once.

    Raises:
        CheckpointError: Its limits make caches that no memory holds.
    """
    limits = session_limits(checkpoint.manifest, max_rows=max_rows, max_slots=max_rows)
    try:
        check_footprint(
            checkpoint.manifest,
            limits,
            memory_limit(device),
            with_shortlist=checkpoint.shortlist is not None,
            tables=cache_tables(
                checkpoint.manifest.network, compute_type=checkpoint.compute_type, device=device
            ),
        )
    except ConfigError as error:
        raise CheckpointError(directory / CONFIG_FILE, str(error)) from error
    return Translator(checkpoint, max_rows=max_rows)
