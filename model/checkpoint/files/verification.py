"""Verification of a checkpoint's files: their sizes against config.json, then their checksums.

Owns how large each can be. The comparison itself is `model.checkpoint.files.checksums`.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from model.checkpoint.files.checksums import verify_files
from model.checkpoint.manifest import CONFIG_FILE, Manifest, ShortlistEntry
from model.errors import CheckpointError
from model.system.host_memory import host_limit, readable_bytes

MAX_CARD_BYTES = 16 * 2**20
MAX_TOKENIZER_BYTES = 128 * 2**20
MAX_VOCABULARY_BYTES = 128 * 2**20
MAX_HEADER_BYTES = 32 * 2**20
_MAX_SHORTLIST_HEADER_BYTES = 2**10
MAX_OTHER_BYTES = 128 * 2**20
"""Of all files together that are listed and that config.json does not name."""

_ELEMENT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1}


def verify_parts(directory: Path, manifest: Manifest, listed: Mapping[str, str]) -> None:
    """Compare every listed file but config.json with its size and its checksum.

    Raises:
        CheckpointError: One is missing or is not what was written, or no memory holds the weights.
    """
    files = manifest.files
    named = {*asdict(files).values(), *([manifest.shortlist.file] if manifest.shortlist else [])}
    unlisted = sorted(named - set(listed))
    if unlisted:
        raise CheckpointError(directory / unlisted[0], "has no line in the checksums")
    num_bytes, limit = num_weight_bytes(manifest), host_limit()
    if limit is not None and num_bytes > limit:
        raise CheckpointError(
            directory / CONFIG_FILE,
            f"tensors has weights of {readable_bytes(num_bytes)}; there are at most"
            f" {readable_bytes(limit)}",
        )
    sizes = {
        files.card: (0, MAX_CARD_BYTES),
        files.source_tokenizer: (0, MAX_TOKENIZER_BYTES),
        files.target_tokenizer: (0, MAX_TOKENIZER_BYTES),
        files.source_vocabulary: (0, MAX_VOCABULARY_BYTES),
        files.target_vocabulary: (0, MAX_VOCABULARY_BYTES),
        files.weights: (num_bytes, num_bytes + MAX_HEADER_BYTES),
    }
    if manifest.shortlist is not None:
        most = max_shortlist_bytes(manifest, manifest.shortlist)
        sizes[manifest.shortlist.file] = (most - _MAX_SHORTLIST_HEADER_BYTES, most)
    verify_files(directory, listed, sizes, max_other_bytes=MAX_OTHER_BYTES)


def max_shortlist_bytes(manifest: Manifest, entry: ShortlistEntry) -> int:
    """Bytes of a shortlist's file at most: three tensors of int32, and a header."""
    count = entry.num_always + manifest.network.vocab_size + 1 + entry.num_ids
    return 4 * count + _MAX_SHORTLIST_HEADER_BYTES


def num_weight_bytes(manifest: Manifest) -> int:
    """Bytes of all tensors as they are stored, with the scales of those that are quantised."""
    return sum(
        math.prod(entry.shape) * _ELEMENT_BYTES[entry.dtype]
        + (0 if entry.quantisation is None else 4 * entry.shape[0])
        for entry in manifest.tensors.values()
    )
