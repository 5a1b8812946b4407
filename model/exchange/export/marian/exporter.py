"""A checkpoint as Marian's own files: model.npz, decoder.yml, vocabularies, licences.

Owns the folder, the rows of the tables that go there, and the refusal of what Marian does not have.
The options stand in model.npz, as Marian itself keeps them; Marian makes its int8 forms of it
(`marian-conv --gemm-type intgemm8`). Nothing of Marian is needed to write the files.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from model.checkpoint.manifest import Manifest
from model.checkpoint.weights import Checkpoint
from model.config import SearchConfig
from model.exchange.carried import write_carried
from model.exchange.export.marian.network import (
    MARIAN_NATIVE_FIELDS,
    marian_options,
    marian_parameters,
)
from model.exchange.export.marian.vocabulary import Vocabularies, marian_vocabularies
from model.exchange.export.output import export_problems, new_directory, refuse, write_licences
from model.exchange.imports.marian.files import OPTIONS_TENSOR
from model.nn.transformer import Transformer

MODEL, SETTINGS = "model.npz", "decoder.yml"
_CONTROL_NOTE = """
Marian never writes the {num} pieces of control bytes, which the checkpoint may.
"""
_IMPOSSIBLE_NOTE = """
Of {num} target tokens, which the checkpoint never writes, the bias is lower than any other here:
the probability that the network gives them goes to all others.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows of the tables that Marian has, and its tokens that it must not write.

    Attributes:
        source: Number of rows.
        target: The same of the target's.
        impossible: Target ids.
    """

    source: int
    target: int
    impossible: tuple[int, ...]


def export_marian(checkpoint: Checkpoint, output: Path) -> None:
    """Write a folder that `marian-decoder --config decoder.yml` and `dragoman convert` read.

    Args:
        checkpoint: A loaded checkpoint; its weights are widened to float32 first.
        output: A directory that does not exist yet; its parent does.

    Raises:
        UnsupportedVariantError: Marian cannot express the network; all reasons are listed.
        CheckpointError: `output` exists or cannot be written.
    """
    manifest, network = checkpoint.manifest, checkpoint.transformer.config
    problems = export_problems(manifest, MARIAN_NATIVE_FIELDS)
    problems += _token_problems(manifest, checkpoint.transformer)
    vocabularies = marian_vocabularies(checkpoint)
    problems += vocabularies.problems
    rows = _rows(manifest, vocabularies)
    refuse(MARIAN_NATIVE_FIELDS.by, problems)
    sizes = rows.source, rows.target
    with new_directory(output) as partial:
        parameters = marian_parameters(
            checkpoint.transformer,
            rows=(slice(rows.source), slice(rows.target)),
            impossible=rows.impossible,
        )
        arrays = {name: np.ascontiguousarray(values.numpy()) for name, values in parameters}
        arrays[OPTIONS_TENSOR] = options_array(marian_options(network, rows=sizes))
        np.savez(partial / MODEL, **arrays)  # type: ignore[arg-type]  # its stubs want one kind
        for name, data in vocabularies.contents.items():
            (partial / name).write_bytes(data)
        (partial / SETTINGS).write_text(_settings(vocabularies), encoding="utf-8")
        after = _notes(manifest, vocabularies, rows)
        write_carried(partial, manifest)
        write_licences(partial, manifest, before=vocabularies.readme, after=after)


def options_array(options: str) -> "np.ndarray[tuple[int], np.dtype[np.int8]]":
    """The text that stands in model.npz, with the NUL that ends it there."""
    return np.frombuffer(options.encode("utf-8") + b"\0", dtype=np.int8)


def _token_problems(manifest: Manifest, transformer: Transformer) -> list[str]:
    """Special tokens that are not Marian's."""
    tokens, problems = manifest.tokens, []
    target = transformer.target_embedding.weight
    if tokens.start_id != tokens.pad_id or bool(target[tokens.start_id].any()):
        problems.append(
            f"tokens.start_id is {tokens.start_id} (only padding, a vector of zeros: Marian's"
            " decoder begins with one)"
        )
    if tokens.unk_id not in tokens.suppressed_ids:
        problems.append(
            f"tokens.suppressed_ids is without {tokens.unk_id} (only with it: Marian never writes"
            " unknown text)"
        )
    if not tokens.has_source_eos:
        problems.append("tokens.has_source_eos is False (only True)")
    return problems


def _rows(manifest: Manifest, vocabularies: Vocabularies) -> _Rows:
    """All rows but that of padding, where it is the last one and no token's.

    A table of the source's own ends with its vocabulary: Marian takes sizes from there.
    """
    pad, network = manifest.tokens.pad_id, manifest.network
    source, target = vocabularies.named
    if network.share_embeddings:
        source = target = source | target
    num_target = network.output_size - (pad == network.output_size - 1 and pad not in target)
    num_source = num_target if network.share_embeddings else max(source, default=0) + 1
    silent = {*manifest.tokens.suppressed_ids} - vocabularies.banned
    written = vocabularies.named[1] | {pad}
    return _Rows(
        source=num_source,
        target=num_target,
        impossible=tuple(sorted(index for index in silent & written if index < num_target)),
    )


def _notes(manifest: Manifest, vocabularies: Vocabularies, rows: _Rows) -> str:
    """How Marian's translations may differ from the checkpoint's, for README.md."""
    counts = {
        _IMPOSSIBLE_NOTE: len(rows.impossible),
        _CONTROL_NOTE: len(vocabularies.banned - {*manifest.tokens.suppressed_ids}),
    }
    return "".join(note.format(num=num) for note, num in counts.items() if num)


def _settings(vocabularies: Vocabularies) -> str:
    """decoder.yml: the files, and the search that is the usual one here."""
    search = SearchConfig()
    return yaml.safe_dump(
        {
            "relative-paths": True,
            "models": [MODEL],
            "vocabs": list(vocabularies.names),
            "beam-size": search.beam_size,
            "normalize": search.length_penalty,
        },
        sort_keys=False,
    )
