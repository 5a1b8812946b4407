"""Reading and writing of whole checkpoints: every tensor checked, the directory replaced at once.

Owns the correspondence between the network's `state_dict` and model.safetensors:
`save_checkpoint` and `load_checkpoint`. What config.json says is `model.checkpoint.manifest`; how a
directory takes another's place `model.checkpoint.files.replacement`. Nothing is ever unpickled.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from model.checkpoint.description.config_file import format_manifest, read_manifest
from model.checkpoint.description.strict_json import format_json
from model.checkpoint.files.checksums import CHECKSUMS_FILE, format_checksums, unreplaced
from model.checkpoint.files.replacement import replaced_directory
from model.checkpoint.manifest import (
    CONFIG_FILE,
    CheckpointFiles,
    Licence,
    Manifest,
    TensorEntry,
)
from model.checkpoint.tensors.safetensors_file import TYPE_NAMES, write_weight_file
from model.checkpoint.tensors.stored import open_weights
from model.checkpoint.tensors.weight_header import check_tensors
from model.checkpoint.tokenizer import build_tokenizer, load_tokenizer
from model.config import LengthLimits, SpecialTokens
from model.errors import ConfigError
from model.nn.transformer import Transformer
from model.text.languages.tags import LanguagePair
from model.text.subwords.moses import MosesBpe, MosesPieces
from model.text.subwords.normalisation import Normalisation
from model.text.subwords.pieces import PieceModel, Pieces
from model.text.subwords.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerParts:
    """Files and tables that a checkpoint's tokenizer is made of.

    Attributes:
        source_pieces: Bytes of the source's SentencePiece file, or of its merges with `moses`.
        source_table: Piece → id of the source; None takes the file's own numbering, which merges
            do not have.
        target_pieces: The target's file; None shares the source's.
        target_table: The target's table; None shares the source's if the file is shared,
            and otherwise takes the target file's own numbering.
        moses: How text becomes pieces without SentencePiece.
        normalisation: How source text is cleaned before.
    """

    source_pieces: bytes
    source_table: Mapping[str, int] | None = None
    target_pieces: bytes | None = None
    target_table: Mapping[str, int] | None = None
    moses: MosesBpe | None = None
    normalisation: Normalisation | None = None

    def tables(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Both tables, the ones that were left out filled in.

        Raises:
            ConfigError: Merges, which number no pieces, are without a table.
        """
        source = self.source_table
        if self.moses is not None:
            if source is None:
                raise ConfigError("merges number no pieces; a vocabulary must stand beside them")
            return source, source if self.target_table is None else self.target_table
        if source is None:
            source = PieceModel(self.source_pieces).table()
        if self.target_table is not None:
            return source, self.target_table
        if self.target_pieces is not None:
            return source, PieceModel(self.target_pieces).table()
        return source, source

    def build(self, manifest: Manifest) -> Tokenizer:
        """The tokenizer that loading will give.

        Raises:
            ConfigError: The parts do not fit the manifest.
        """
        source_table, target_table = self.tables()
        source_model, target_model = self._models()
        return build_tokenizer(
            manifest,
            source_model=source_model,
            target_model=target_model,
            source_table=source_table,
            target_table=target_table,
        )

    def _models(self) -> tuple[Pieces, Pieces]:
        target, rules = self.target_pieces or self.source_pieces, self.moses
        if rules is None:
            return PieceModel(self.source_pieces), PieceModel(target)
        return (
            MosesPieces(self.source_pieces, rules, rules.source_language),
            MosesPieces(target, rules, rules.target_language),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A loaded checkpoint: its description, its network in eval mode, its tokenizer."""

    manifest: Manifest
    transformer: Transformer
    tokenizer: Tokenizer

    @property
    def network(self) -> Transformer:
        """What a decoding session runs."""
        return self.transformer

    @property
    def shortlist(self) -> None:
        """What sentences may choose: all target tokens."""
        return


def save_checkpoint(
    directory: Path,
    *,
    transformer: Transformer,
    name: str,
    description: str,
    licence: str,
    tokens: SpecialTokens,
    pairs: tuple[LanguagePair, ...],
    limits: LengthLimits,
    licences: tuple[Licence, ...],
    tokenizer: TokenizerParts,
    card: str,
    quantise: bool = True,
) -> Manifest:
    """Write a checkpoint; a crash leaves the old directory, or none, never half of one.

    The files are written to a hidden directory beside `directory`, flushed to the disk and
    moved into place. A checkpoint that stands there is moved aside first and removed after
    (stopped in between, it is beside `directory` as `.<name>.<id>.old`); anything else that
    stands there is refused.

    Args:
        directory: Where the checkpoint will be; its parent must exist.
        transformer: Its weights are stored in their own float types, its config as `network`.
        name: Short name, shown to users.
        description: One line for people.
        licence: Licence of the weights, SPDX where there is one.
        tokens: Special ids.
        pairs: Directions it translates.
        limits: Lengths it was trained for.
        licences: Of every corpus.
        tokenizer: SentencePiece files and tables.
        card: Text of card.md: what the network is, its data, its scores, its limits.
        quantise: Store tensors of two or more dimensions as int8 rows.

    Returns:
        The manifest that was written.

    Raises:
        ConfigError: The parts contradict each other, or a weight is not finite.
        CheckpointError: `directory` is something else than a checkpoint, or cannot be written.
    """
    state = transformer.state_dict()
    entries = {name: _entry(name, value, quantise=quantise) for name, value in state.items()}
    files, contents = tokenizer_files(tokenizer)
    manifest = Manifest(
        name=name,
        description=description,
        licence=licence,
        network=transformer.config,
        tokens=tokens,
        pairs=pairs,
        limits=limits,
        licences=licences,
        tensors=entries,
        files=files,
        moses=tokenizer.moses,
        normalisation=tokenizer.normalisation,
    )
    contents[CONFIG_FILE] = format_manifest(manifest)
    contents[files.card] = card.encode()
    tokenizer.build(manifest)  # refuses tables that do not fit, before anything is written
    with replaced_directory(directory) as partial:
        for file_name, data in contents.items():
            (partial / file_name).write_bytes(data)
        write_weight_file(partial / files.weights, entries, state.items())
        (partial / CHECKSUMS_FILE).write_bytes(format_checksums(partial.iterdir()))
    return manifest


def load_checkpoint(
    directory: Path,
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
    manifest: Manifest | None = None,
) -> Checkpoint:
    """Read, check and widen a checkpoint.

    Args:
        directory: What `save_checkpoint` wrote.
        device: Where the network goes.
        dtype: Float type of the network in memory, whatever the file has.
        manifest: Its description, where the caller has it from `read_manifest`: then the files are
            not compared with their checksums once more.

    Raises:
        CheckpointError: A file is missing, damaged, of another version or shape, or has a
            weight that is not finite; the error names the file and lists what is wrong.
    """
    with unreplaced(directory):
        manifest = read_manifest(directory) if manifest is None else manifest
        tokenizer = load_tokenizer(directory, manifest)
        check_tensors(directory, manifest)
        with torch.device("meta"):
            transformer = Transformer(manifest.network)
        state = _read_tensors(directory / manifest.files.weights, manifest.tensors, dtype=dtype)
        transformer.load_state_dict(
            {name: tensor.to(device) for name, tensor in state}, strict=True, assign=True
        )
    return Checkpoint(manifest=manifest, transformer=transformer.eval(), tokenizer=tokenizer)


def _read_tensors(
    path: Path, entries: Mapping[str, TensorEntry], *, dtype: torch.dtype
) -> Iterator[tuple[str, Tensor]]:
    """Names and widened values, once the header of the file agrees with the entries."""
    with open_weights(path, entries) as weights:
        for name in entries:
            yield name, weights.tensor(name, dtype=dtype)


def _entry(name: str, weight: Tensor, *, quantise: bool) -> TensorEntry:
    """How a tensor is stored.

    Raises:
        ConfigError: Its values are no floats, or not all of them are finite.
    """
    if not bool(torch.isfinite(weight).all()):
        raise ConfigError(f"{name} has values that are not finite; it cannot be saved")
    shape = tuple(weight.shape)
    if quantise and weight.dim() >= 2:
        return TensorEntry(shape=shape, dtype="int8", quantisation="int8-row")
    if weight.dtype in TYPE_NAMES and weight.is_floating_point():
        return TensorEntry(shape=shape, dtype=TYPE_NAMES[weight.dtype])
    raise ConfigError(f"{name} has type {weight.dtype}; a checkpoint stores floats")


def tokenizer_files(parts: TokenizerParts) -> tuple[CheckpointFiles, dict[str, bytes]]:
    """Names and bytes of the pieces' files and the vocabularies; equal ones are one file."""
    ending = "spm" if parts.moses is None else "merges"
    one, two = f"source.{ending}", f"target.{ending}"
    names = CheckpointFiles(source_tokenizer=one, target_tokenizer=one)
    contents = {one: parts.source_pieces}
    if parts.target_pieces not in {None, parts.source_pieces}:
        names = replace(names, target_tokenizer=two)
        contents[two] = parts.target_pieces or b""
    source, target = (format_json(dict(table)) for table in parts.tables())
    if source != target:
        one, two = "source_vocabulary.json", "target_vocabulary.json"
        names = replace(names, source_vocabulary=one, target_vocabulary=two)
    contents[names.source_vocabulary] = source
    contents[names.target_vocabulary] = target
    return names, contents
