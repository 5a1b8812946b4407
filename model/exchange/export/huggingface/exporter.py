"""A checkpoint as a folder of Hugging Face's transformers: network, search, tokenizer, licences.

Owns the choice of the family, the refusal of what it does not express, and the files of the folder;
`transformers` itself is not needed to write them. What a family is told is the family's own file.
"""

from pathlib import Path

from safetensors.torch import save_file

from model.checkpoint.description.strict_json import format_json
from model.checkpoint.weights import Checkpoint
from model.config import ModelConfig
from model.exchange.carried import CARRIED_KEY, carried_value
from model.exchange.export.huggingface.family import Family, generation
from model.exchange.export.huggingface.fsmt import FSMT
from model.exchange.export.huggingface.m2m100 import M2M100
from model.exchange.export.huggingface.marian import MARIAN
from model.exchange.export.huggingface.mbart import MBART
from model.exchange.export.huggingface.t5 import T5
from model.exchange.export.output import export_problems, new_directory, refuse, write_licences
from model.nn.layers import known_decoder_layers
from model.nn.self_attention import SelfAttention

FAMILIES: tuple[Family, ...] = (MARIAN, M2M100, MBART, T5, FSMT)


def export_huggingface(checkpoint: Checkpoint, output: Path) -> None:
    """Write a folder that `AutoModelForSeq2SeqLM` and `AutoTokenizer` load.

    Args:
        checkpoint: A loaded checkpoint; its weights are written in float32.
        output: A directory that does not exist yet; its parent does.

    Raises:
        UnsupportedVariantError: The family cannot express the network, or its tokenizer the
            checkpoint's; all reasons are listed.
        CheckpointError: `output` exists or cannot be written.
    """
    manifest = checkpoint.manifest
    family = family_of(manifest.network)
    problems = export_problems(manifest, family.fields)
    if not manifest.tokens.has_source_eos:
        problems.append("tokens.has_source_eos is False (only True)")
    tokenizer = family.tokenizer(checkpoint)
    refuse(family.fields.by, [*problems, *tokenizer.problems])
    known_decoder_layers(
        checkpoint.transformer.decoder.layers, by=family.fields.by, cell=SelfAttention
    )
    described = {
        "is_encoder_decoder": True,
        "dtype": "float32",
        "_name_or_path": manifest.name,
        CARRIED_KEY: carried_value(manifest),
    }
    with new_directory(output) as partial:
        (partial / "config.json").write_bytes(format_json(family.config(manifest) | described))
        (partial / "generation_config.json").write_bytes(format_json(generation(checkpoint)))
        for name, data in tokenizer.contents.items():
            (partial / name).write_bytes(data)
        state = {name: value.contiguous() for name, value in family.tensors(checkpoint)}
        save_file(state, partial / "model.safetensors", metadata={"format": "pt"})
        (partial / "model.safetensors").chmod(0o644)  # safetensors hides it from other users
        write_licences(partial, manifest)


def family_of(network: ModelConfig) -> Family:
    """The family whose positions and norms a network has; Marian where it has those of none."""
    if network.position == "relative":
        return T5
    if network.position == "learned":
        return MBART
    if network.position == "sinusoidal-m2m100" and network.position_offset > 0:
        return M2M100 if network.norm_placement == "pre" else FSMT
    return MARIAN
