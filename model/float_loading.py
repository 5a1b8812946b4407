"""Loading of a checkpoint as a float network, and the decoding form of one that is in memory.

Owns what needs torch of loading for decoding; the choice of the arithmetic is `model.loading`.
"""

import logging
from copy import deepcopy
from pathlib import Path
from typing import Literal

import torch

from model.arithmetic import ComputeReason
from model.checkpoint.manifest import Manifest
from model.checkpoint.weights import Checkpoint, load_checkpoint
from model.config import ModelConfig
from model.decode.backends.floats import slow_reason
from model.loading import Device, Runnable, find_int8_problem, max_positions
from model.native.in_memory import pack_transformer

_LOGGER = logging.getLogger("dragoman")


def load_floats(
    directory: Path,
    manifest: Manifest,
    *,
    device: Device,
    compute_type: Literal["float32", "bfloat16"],
    compute_reason: ComputeReason,
    compute_problem: str,
    num_threads: int | None,
) -> Runnable:
    """A checkpoint as a float network; see `model.loading.load_for_decoding`.

    Args:
        directory: The checkpoint.
        manifest: Its description; the files are compared with their checksums already.
        device: As of `load_for_decoding`, and so are the others.
        compute_type: Likewise.
        compute_reason: Likewise.
        compute_problem: Likewise.
        num_threads: Likewise.

    Raises:
        CheckpointError: A file is missing, damaged or inconsistent.
    """
    if num_threads is not None:
        torch.set_num_threads(num_threads)
    dtype = torch.bfloat16 if compute_type == "bfloat16" else torch.float32
    checkpoint = load_checkpoint(directory, device=device, dtype=dtype, manifest=manifest)
    warn_if_slow(manifest.network, manifest.name)
    return Runnable(
        manifest=manifest,
        network=checkpoint.transformer,
        tokenizer=checkpoint.tokenizer,
        compute_type=compute_type,
        compute_reason=compute_reason,
        compute_problem=compute_problem,
    )


def as_served(checkpoint: Checkpoint) -> Runnable:
    """A network in memory in the arithmetic that `load_for_decoding` would choose for it.

    The network itself stays as it is: training may go on with it.
    """
    manifest, network = checkpoint.manifest, checkpoint.transformer
    device = network.target_embedding.weight.device
    if find_int8_problem(manifest, device) is None:
        packed = pack_transformer(
            network,
            max_positions=max_positions(manifest),
            suppressed_ids=manifest.tokens.suppressed_ids,
            num_threads=torch.get_num_threads(),
        )
        return Runnable(
            manifest=manifest,
            network=packed,
            tokenizer=checkpoint.tokenizer,
            compute_type="int8",
        )
    if device.type != "cpu":
        network = deepcopy(network).to(torch.bfloat16)
    return Runnable(
        manifest=manifest,
        network=network,
        tokenizer=checkpoint.tokenizer,
        compute_type="float32" if device.type == "cpu" else "bfloat16",
    )


def warn_if_slow(config: ModelConfig, name: str) -> None:
    """Log that a network will be decoded without caches, if it will.

    Args:
        config: Of the network.
        name: Of its checkpoint.
    """
    reason = slow_reason(config)
    if reason is not None:
        fields = {"checkpoint": name, "reason": reason}
        _LOGGER.warning("slow_decoding", extra={"fields": fields})
