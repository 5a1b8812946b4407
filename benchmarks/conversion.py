"""`python -m benchmarks.conversion`: how much memory does `dragoman convert` take?

Writes a network of M2M100's build in 16-bit floats, in shards of a GiB at most, as the hub has
them, into a temporary folder; converts it in a process of its own, and a tiny one of the same build
before, and watches both. Prints a table and writes benchmarks/results/conversion-<time>.json.

What a process has is of two kinds: memory of its own, and pages of files that are mapped, which the
system takes back whenever it wants; the shards are read so. Both are told, at their peaks. Needs
about one and a half times the network's size on the disk. Linux only. The tokenizer is the tests':
PYTHONPATH must hold `tests`.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import M2M100Config, M2M100ForConditionalGeneration
from transformers.utils import logging

from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from model.checkpoint.manifest import TensorEntry
from model.checkpoint.tensors.safetensors_file import opened_weight_file
from support.huggingface_folders import filled, m2m100_folder, trained_spm

ROOT = Path(__file__).resolve().parents[1]
GIB = 2**30
MAX_SHARD_BYTES = GIB
_VOCABULARY, _TINY_VOCABULARY = 256_206, 1000
_LEAST_GIB = 0.6
"""The table of NLLB takes 0.49 GiB."""
_NUM_NO_PIECES = 206
"""Rows of NLLB's table that SentencePiece has no piece for: tags, the mask, what fills up."""
_STORED_BYTES = 2
_CHUNK = 2**22
_PERIOD_SECONDS = 0.02
_TIED = (
    "lm_head.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
)
_COLUMNS = "{:10} {:>10} {:>10} {:>12} {:>14} {:>9}"
_HEAD = ("network", "source MiB", "out MiB", "own MiB", "resident MiB", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What one process took.

    Attributes:
        source_bytes: Of the weights that were read.
        written_bytes: Of the checkpoint.
        own_bytes: The most memory of its own that the process had.
        resident_bytes: The most that it had with mapped files, as the system counts it.
        wall_seconds: From its start to its end.
    """

    source_bytes: int
    written_bytes: int
    own_bytes: int
    resident_bytes: int
    wall_seconds: float

    def row(self, name: str) -> str:
        """A line of the table."""
        sizes = (self.source_bytes, self.written_bytes, self.own_bytes, self.resident_bytes)
        numbers = (round(size / 2**20) for size in sizes)
        return _COLUMNS.format(name, *numbers, f"{self.wall_seconds:.1f}")


def network_shape(num_bytes: int, *, vocabulary: int = _VOCABULARY) -> dict[str, Any]:
    """Settings of a network of about so many bytes: NLLB's table, as many layers as fit.

    Raises:
        ValueError: The table alone is larger.
    """
    width, inner = (1024, 4096) if vocabulary > 10_000 else (64, 128)
    table = vocabulary * width * _STORED_BYTES
    attention, forward = 4 * width * width, 2 * width * inner
    pair = (3 * attention + 2 * forward) * _STORED_BYTES
    depth = round((num_bytes - table) / pair)
    if depth < 1:
        raise ValueError(f"{num_bytes} bytes are too few; the table alone has {table}")
    return {
        "vocab_size": vocabulary,
        "d_model": width,
        "encoder_layers": depth,
        "decoder_layers": depth,
        "encoder_ffn_dim": inner,
        "decoder_ffn_dim": inner,
        "encoder_attention_heads": width // 64,
        "decoder_attention_heads": width // 64,
    }


def write_network(folder: Path, shape: Mapping[str, Any]) -> int:
    """A folder as the hub has it, written tensor by tensor; the bytes of its weights."""
    spm = filled(trained_spm(260, kind="bpe"), shape["vocab_size"] - _NUM_NO_PIECES)
    m2m100_folder(folder, kind="nllb", spm=spm)  # its tokenizer; the weights are written again
    (folder / "model.safetensors").unlink()
    config = M2M100Config(scale_embedding=True, **shape)
    config.architectures = ["M2M100ForConditionalGeneration"]
    config.save_pretrained(folder)
    with torch.device("meta"):
        state = M2M100ForConditionalGeneration(config).state_dict()
    entries = {
        name: TensorEntry(shape=tuple(value.shape), dtype="float16")
        for name, value in state.items()
        if name not in _TIED and "embed_positions" not in name
    }
    shards = list(_shards(entries))
    names = [f"model-{n:05}-of-{len(shards):05}.safetensors" for n in range(1, len(shards) + 1)]
    random = np.random.default_rng(1)
    for file_name, shard in zip(names, shards, strict=True):
        _write_shard(folder / file_name, shard, random)
    places = {name: file for file, shard in zip(names, shards, strict=True) for name in shard}
    index = {"metadata": {}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return sum((folder / name).stat().st_size for name in names)


def _shards(entries: Mapping[str, TensorEntry]) -> Iterator[dict[str, TensorEntry]]:
    """The tensors in their order, in parts that are not too large."""
    shard: dict[str, TensorEntry] = {}
    size = 0
    for name, entry in entries.items():
        num_bytes = math.prod(entry.shape) * _STORED_BYTES
        if shard and size + num_bytes > MAX_SHARD_BYTES:
            yield shard
            shard, size = {}, 0
        shard[name] = entry
        size += num_bytes
    yield shard


def _write_shard(
    path: Path, entries: Mapping[str, TensorEntry], random: np.random.Generator
) -> None:
    block = random.standard_normal(_CHUNK, dtype=np.float32) * 0.02
    with opened_weight_file(path, entries) as file:
        for name, entry in entries.items():
            file.write(name, torch.from_numpy(_values(entry.shape, block)))


def _values(shape: tuple[int, ...], block: NDArray[np.float32]) -> NDArray[np.float16]:
    """The block again and again: random enough, and quickly made."""
    return np.resize(block.astype(np.float16), shape)


def watched(source: Path, destination: Path, *, compute: str) -> Conversion:
    """One conversion in a process of its own.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    command = [sys.executable, "-m", "service.cli.main", "convert", str(source), str(destination)]
    command += ["--compute", compute, "--licence", "CC0-1.0"]
    begun = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    own, (ended, status, usage) = 0, os.wait4(process.pid, os.WNOHANG)
    while not ended:
        own = max(own, own_bytes(process.pid))
        time.sleep(_PERIOD_SECONDS)
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Conversion(
        source_bytes=sum(path.stat().st_size for path in source.glob("*.safetensors")),
        written_bytes=sum(path.stat().st_size for path in destination.iterdir()),
        own_bytes=own,
        resident_bytes=usage.ru_maxrss * 1024,
        wall_seconds=round(time.monotonic() - begun, 1),
    )


def own_bytes(process_id: int) -> int:
    """Memory of a process that is no mapped file; 0 once it has ended."""
    try:
        text = Path(f"/proc/{process_id}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = re.search(r"^RssAnon:\s+(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) * 1024 if found is not None else 0


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.conversion", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--gib", type=float, default=2.0, help="of weights (%(default)s)")
    parser.add_argument(
        "--compute", choices=("int8", "float16", "float32"), default="int8", help="(%(default)s)"
    )
    parser.add_argument("--folder", type=Path, help="where everything is written meanwhile")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args(words)
    if arguments.gib < _LEAST_GIB:
        parser.error(f"--gib is {arguments.gib}; it must be at least {_LEAST_GIB}")
    return arguments


def main(words: Sequence[str]) -> int:
    """Write, convert, print."""
    arguments = parse_arguments(words)
    started = datetime.now(UTC)
    shapes = {
        "tiny": network_shape(2**20, vocabulary=_TINY_VOCABULARY),
        "large": network_shape(int(arguments.gib * GIB)),
    }
    print(_COLUMNS.format(*_HEAD))
    found = {}
    for name, shape in shapes.items():
        with tempfile.TemporaryDirectory(prefix="dragoman-", dir=arguments.folder) as folder:
            write_network(Path(folder) / "hub", shape)
            found[name] = watched(
                Path(folder) / "hub", Path(folder) / "ours", compute=arguments.compute
            )
        print(found[name].row(name), flush=True)
    large, tiny = found["large"], found["tiny"]
    grown = {
        "own": (large.own_bytes - tiny.own_bytes) / large.source_bytes,
        "resident": (large.resident_bytes - tiny.resident_bytes) / large.source_bytes,
    }
    result = {
        "benchmark": "conversion",
        "command": describe_command("benchmarks.conversion", words),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "compute": arguments.compute,
        "network": shapes["large"],
        "largest_tensor_bytes": _VOCABULARY * shapes["large"]["d_model"] * _STORED_BYTES,
        "conversions": {name: asdict(each) for name, each in found.items()},
        "grown_by_share_of_source": {name: round(share, 3) for name, share in grown.items()},
    }
    path = write_result(arguments.results, "conversion", started, result)
    print(
        f"above the tiny one: {grown['own']:.0%} of the weights' size in memory of its own,"
        f" {grown['resident']:.0%} with mapped files\n{path}"
    )
    return 0


if __name__ == "__main__":
    logging.disable_progress_bar()
    sys.exit(main(sys.argv[1:]))
