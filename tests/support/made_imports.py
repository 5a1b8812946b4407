"""A format of its own for tests of the frame around importers: a folder that says all by itself."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from model.checkpoint.tensors.quantisation import quantise_rows
from model.checkpoint.weights import TokenizerParts
from model.errors import ForeignModelError
from model.exchange.imports.imported import (
    ForeignTensor,
    ImportedModel,
    ImportOptions,
    QuantisedRows,
)
from support.tiny_checkpoint import (
    EN_ZH,
    TINY_LIMITS,
    TINY_TOKENS,
    tiny_network,
    tiny_spm,
    tiny_transformer,
)


def write_made_model(folder: Path, *, seed: int = 5) -> Path:
    """A folder that `MadeImporter` recognises."""
    folder.mkdir(parents=True)
    (folder / "made.json").write_text(json.dumps({"seed": seed}))
    save_file(tiny_transformer(seed=seed).state_dict(), folder / "weights")
    return folder


@dataclass
class MadeImporter:
    """Reads such folders; tests change what it makes of them, and look at what was read."""

    name: str = "the made format"
    change: Callable[[ImportedModel], ImportedModel] = lambda imported: imported
    is_quantised: bool = False
    num_reads: dict[str, int] = field(default_factory=dict)
    before_read: Callable[[str], None] = lambda name: None
    options: ImportOptions | None = None

    def recognises(self, source: Path) -> bool:
        return (source / "made.json").is_file()

    def read(self, source: Path, options: ImportOptions) -> ImportedModel:
        self.options = options
        if not (source / "weights").exists():
            raise ForeignModelError(source, ["weights are missing"])
        tensors = load_file(source / "weights")
        return self.change(
            ImportedModel(
                family="made",
                format="made",
                name="made",
                description="A made model.",
                licence="MIT",
                licences=(),
                network=tiny_network(),
                tokens=TINY_TOKENS,
                pairs=(EN_ZH,),
                limits=TINY_LIMITS,
                tokenizer=TokenizerParts(source_pieces=tiny_spm()),
                tensors={
                    name: ForeignTensor(shape=tuple(value.shape), read=self._reading(name, value))
                    for name, value in tensors.items()
                },
                notes=("It is made.",),
            )
        )

    def _reading(self, name: str, value: Tensor) -> Callable[[], Tensor | QuantisedRows]:
        def read() -> Tensor | QuantisedRows:
            self.before_read(name)
            self.num_reads[name] = self.num_reads.get(name, 0) + 1
            if self.is_quantised and value.dim() == 2:
                quanta, scale = quantise_rows(value)
                return QuantisedRows(quanta=quanta, scale=scale)
            return value

        return read


def without_tensor(name: str) -> Callable[[ImportedModel], ImportedModel]:
    """A change that leaves one tensor out."""
    return lambda imported: replace(
        imported, tensors={key: value for key, value in imported.tensors.items() if key != name}
    )


def all_reads(imported: ImportedModel) -> dict[str, Tensor]:
    """Every tensor of an import, widened, as a `state_dict`."""
    state = {}
    for name, tensor in imported.tensors.items():
        value = tensor.read()
        if isinstance(value, QuantisedRows):
            value = value.quanta.float() * value.scale[:, None]
        state[name] = value.to(torch.float32)
    return state
