"""What an engine says of itself when it is warm, without an engine."""

from typing import Any

from service.engine.messages import LoadedCheckpoint, Ready


def loaded_checkpoint(name: str = "tiny", **changes: Any) -> LoadedCheckpoint:
    """A checkpoint that it has loaded."""
    values: dict[str, Any] = {
        "name": name,
        "compute_type": "float32",
        "max_source_length": 64,
        "max_target_length": 64,
        "max_prefix_length": 1,
    }
    return LoadedCheckpoint(**values | changes)


def warm_engine(*checkpoints: LoadedCheckpoint, **changes: Any) -> Ready:
    """The message of an engine with these checkpoints."""
    values: dict[str, Any] = {
        "protocol_version": 1,
        "device": "cpu",
        "num_threads": 1,
        "load_seconds": 1.0,
        "warmup_seconds": 0.5,
        "max_rows": 16,
        "max_slots": 8,
        "checkpoints": checkpoints,
    }
    return Ready(**values | changes)
