"""A converted network and what it is asked: token ids of real lines, and what it says of them.

Owns our side of the comparison: float32 networks, and the int8 kernels under teacher forcing.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.parity.families import Family
from model.checkpoint.manifest import Manifest
from model.checkpoint.weights import Checkpoint, load_checkpoint
from model.config import SearchConfig
from model.decode.session import DecodeRequest
from model.exchange.imports.convert import StoredType, convert
from model.exchange.imports.formats import IMPORTERS
from model.exchange.imports.imported import ImportOptions
from model.loading import load_for_decoding
from model.native import kernels
from model.native.network import Int8Network
from model.text.languages.tags import LanguagePair
from model.text.subwords.tokenizer import Tokenizer

MAX_SOURCE, MAX_TARGET = 40, 24
BATCH = 25
MAX_LOGITS = 2**20
"""Of one position of a batch; searches keep all of them, so large vocabularies have small ones."""
SEARCH = SearchConfig(beam_size=4, num_hypotheses=4, stopping="first", max_length=MAX_TARGET)
GREEDY = SearchConfig(beam_size=1, max_length=MAX_TARGET)
STORED: Sequence[StoredType] = ("float32", "int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Sentences of a batch.

    Attributes:
        sources: Token ids as our tokenizer gives them, cut to `MAX_SOURCE`.
        targets: Random ids of pieces, EOS at the end: what teacher forcing feeds.
        prefix: Start token and language tags.
        pad_id: What fills rows.
    """

    sources: list[list[int]]
    targets: list[list[int]]
    prefix: list[int]
    pad_id: int

    @property
    def source(self) -> Tensor:
        """Padded sources, (B, S)."""
        return _padded(self.sources, self.pad_id)

    def requests(self, search: SearchConfig = SEARCH) -> list[DecodeRequest]:
        """Searches: with a beam of 4 and all four hypotheses, unless another is named."""
        prefix = tuple(self.prefix)
        return [
            DecodeRequest(source_ids=tuple(ids), prefix_ids=prefix, search=search)
            for ids in self.sources
        ]

    @property
    def is_real(self) -> Tensor:
        """Whether a source position is no padding, (B, S)."""
        width = max(map(len, self.sources))
        return torch.tensor([[i < len(row) for i in range(width)] for row in self.sources])

    @property
    def fed(self) -> Tensor:
        """Prefix and targets without their last, which is asked for and not fed, (B, P + T - 1).

        Rows are filled with their last token, which causal attention hides from what is before.
        """
        rows = [[*self.prefix, *target[:-1]] for target in self.targets]
        width = max(map(len, rows))
        return torch.tensor([[*row, *[row[-1]] * (width - len(row))] for row in rows])

    def of_targets(self, log_probs: Tensor) -> list[list[float]]:
        """Of (B, P + T - 1, V), the value of every target token."""
        start = len(self.prefix) - 1
        return [
            rows[range(start, start + len(target)), target].tolist()
            for rows, target in zip(log_probs, self.targets, strict=True)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A network, converted in float32 and in int8.

    Attributes:
        source: What was converted.
        engine: What the reference's engine runs.
        checkpoint: In float32.
        int8: The packed network of the int8 checkpoint.
        pair: What it translates.
    """

    source: Path
    engine: Path
    checkpoint: Checkpoint
    int8: Int8Network
    pair: LanguagePair

    def samples(self, lines: Sequence[str]) -> Iterator[Sample]:
        """Batches of lines; see `batches`."""
        return batches(self.checkpoint.tokenizer, self.checkpoint.manifest, self.pair, lines)

    def given(self, sources: list[list[int]], targets: list[list[int]]) -> Sample:
        """A batch of given translations, whose ends are among their tokens."""
        return Sample(
            sources=sources,
            targets=targets,
            prefix=list(self.checkpoint.tokenizer.target_prefix(self.pair)),
            pad_id=self.checkpoint.manifest.tokens.pad_id,
        )

    @torch.inference_mode()
    def network(self, sample: Sample) -> tuple[Tensor, Tensor]:
        """Encoder output (B, S, D) and logits (B, P + T - 1, V), float32."""
        transformer, mask = self.checkpoint.transformer, sample.is_real
        memory = transformer.encode(sample.source, mask)
        return memory, transformer.decode(sample.fed, memory, mask)

    def log_probs(self, sample: Sample) -> list[list[float]]:
        """Of every target token, in float32."""
        return sample.of_targets(self.network(sample)[1].log_softmax(dim=-1))

    def int8_log_probs(self, sample: Sample) -> list[list[float]]:
        """Of every target token, by the int8 kernels."""
        return _fed_to_kernels(self.int8, sample)


def batches(
    tokenizer: Tokenizer,
    manifest: Manifest,
    pair: LanguagePair,
    lines: Sequence[str],
    *,
    max_target: int = MAX_TARGET,
    max_logits: int = MAX_LOGITS,
) -> Iterator[Sample]:
    """Batches of lines, those of like lengths together, with random targets.

    Args:
        tokenizer: Of the network.
        manifest: Likewise.
        pair: What is translated.
        lines: What is asked.
        max_target: Tokens of a target at most, EOS among them.
        max_logits: Of one position of a batch.
    """
    sources = [_cut(tokenizer.encode(line, pair), MAX_SOURCE) for line in lines]
    sources.sort(key=len)
    written = sorted(tokenizer.target_pieces().keys() - {*manifest.tokens.suppressed_ids})
    chance = random.Random(1)
    size = max(1, min(BATCH, max_logits // manifest.network.output_size))
    for start in range(0, len(sources), size):
        batch = sources[start : start + size]
        lengths = [chance.randint(1, max_target - 1) for _ in batch]
        yield Sample(
            sources=batch,
            targets=[[*chance.choices(written, k=n), manifest.tokens.eos_id] for n in lengths],
            prefix=list(tokenizer.target_prefix(pair)),
            pad_id=manifest.tokens.pad_id,
        )


def converted(family: Family, folder: Path) -> Subject:
    """The reference's network, written and converted.

    Args:
        family: Which.
        folder: Empty; all files go there.

    Raises:
        ForeignModelError: It cannot be converted.
        UnsupportedVariantError: The int8 kernels are not there, or do not run it.
    """
    source = family.write(folder)
    for compute in STORED:
        convert_as(compute, family, source, folder)
    return opened(family, source, folder)


def convert_as(compute: StoredType, family: Family, source: Path, folder: Path) -> None:
    """Convert a network; the checkpoint is called as its arithmetic.

    Raises:
        ForeignModelError: It cannot be converted.
    """
    options = ImportOptions(pairs=family.pairs)
    convert(source, folder / compute, importers=IMPORTERS, compute=compute, options=options)


def opened(family: Family, source: Path, folder: Path) -> Subject:
    """A network that was converted, in both arithmetics.

    Raises:
        UnsupportedVariantError: The int8 kernels are not there, or do not run it.
    """
    packed = load_for_decoding(folder / "int8", compute_type="int8", num_threads=1).network
    assert isinstance(packed, Int8Network)
    checkpoint = load_checkpoint(folder / "float32")
    return Subject(
        source=source,
        engine=family.engine(source),
        checkpoint=checkpoint,
        int8=packed,
        pair=first_pair(family, checkpoint.manifest),
    )


def first_pair(family: Family, manifest: Manifest) -> LanguagePair:
    """What is translated."""
    pair = manifest.pair(*family.pairs[0])
    assert pair is not None
    return pair


def _fed_to_kernels(network: Int8Network, sample: Sample) -> list[list[float]]:
    """Log-probabilities of every target token, position after position."""
    fed, lengths = sample.fed.numpy(), [len(ids) for ids in sample.sources]
    num_rows, num_steps = fed.shape
    session = kernels.load(network.instruction_set).session(
        network.packed,
        network.team,
        max_rows=num_rows,
        max_slots=num_rows,
        max_source_length=max(lengths),
        max_target_length=num_steps + 1,
        eos_id=0,
    )
    rows, slots = np.arange(num_rows), np.arange(num_rows, dtype=np.int32)
    ids = np.array([index for source in sample.sources for index in source], dtype=np.int32)
    session.encode(ids, np.array(lengths, dtype=np.int32), slots)
    start = len(sample.prefix) - 1
    found: list[list[float]] = [[] for _ in sample.targets]
    values, best = np.empty((num_rows, 1), dtype=np.float32), np.empty((num_rows, 1), np.int64)
    for position in range(num_steps):
        at = np.full(num_rows, position)
        session.feed(fed[:, position].copy(), rows, rows, at, values, best, None)
        index = position - start
        if index < 0:
            continue  # language tags are fed and not scored
        wanted = [[target[min(index, len(target) - 1)]] for target in sample.targets]
        session.log_probs_of(np.array(wanted), values)
        for row, target in enumerate(sample.targets):
            if index < len(target):
                found[row].append(float(values[row, 0]))
    return found


def _cut(ids: Sequence[int], length: int) -> list[int]:
    """So many ids at most; the last, which is EOS, stays."""
    return [*ids[: min(length, len(ids)) - 1], ids[-1]]


def _padded(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[pad_id] * (width - len(row))] for row in rows])
