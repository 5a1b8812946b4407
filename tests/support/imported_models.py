"""Imported models in memory: what a conversion would write, without its files."""

from torch import Tensor

from model.checkpoint.manifest import CheckpointFiles, Manifest
from model.checkpoint.weights import Checkpoint
from model.exchange.imports.imported import ImportedModel, QuantisedRows
from model.nn.transformer import Transformer


def widened(stored: Tensor | QuantisedRows) -> Tensor:
    """The weights of a stored tensor, float32."""
    if isinstance(stored, QuantisedRows):
        return stored.quanta.float() * stored.scale[:, None]
    return stored.float()


def imported_state(imported: ImportedModel) -> dict[str, Tensor]:
    """Every tensor, of the shape that was announced for it."""
    state = {}
    for name, tensor in imported.tensors.items():
        state[name] = widened(tensor.read())
        assert tuple(state[name].shape) == tensor.shape, name
    return state


def imported_checkpoint(imported: ImportedModel) -> Checkpoint:
    """A checkpoint as loading would give it; every tensor of the network is there, and no other."""
    transformer = Transformer(imported.network)
    transformer.load_state_dict(imported_state(imported), strict=True)
    assert imported.unused == ()
    manifest = Manifest(
        name=imported.name,
        description=imported.description,
        licence=imported.licence or "unknown",
        network=imported.network,
        tokens=imported.tokens,
        pairs=imported.pairs,
        limits=imported.limits,
        licences=imported.licences,
        tensors={},
        files=CheckpointFiles(),
    )
    tokenizer = imported.tokenizer.build(manifest)
    return Checkpoint(manifest=manifest, transformer=transformer.eval(), tokenizer=tokenizer)
