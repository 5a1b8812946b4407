"""The loss of one batch, in the run's precision.

Owns the way from a batch to its summed loss (one pass, or two for R-Drop), the precision of a
run and the compiled stacks. Does not own the formulas (`loss`, `paired_loss`), nor what happens to
the gradients.
"""

import importlib.util
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from model.errors import ConfigError
from model.nn.masks import padding_mask
from model.nn.transformer import Transformer
from model.train.config.run import PrecisionName
from model.train.data.batching import IGNORED, Batch
from model.train.loop.loss import label_smoothed_loss, projected_loss
from model.train.loop.paired_loss import paired_loss, projected_paired_loss
from model.train.loop.precision import precision_on

INDUCTOR = "inductor"
"""torch's own backend, the one that is worth the time."""

_CXX_COMPILERS = ("g++", "clang++", "c++")
_C_COMPILERS = ("cc", "gcc", "clang")


def compute_context(device: torch.device, precision: PrecisionName) -> torch.autocast:
    """Context with the precision of a run."""
    is_low = precision_on(device, precision) == "bfloat16"
    return torch.autocast(device.type, torch.bfloat16, enabled=is_low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacks:
    """Encoder and decoder as training calls them: plain or compiled."""

    encoder: Callable[..., Tensor]
    decoder: Callable[..., Tensor]


def plain_stacks(transformer: Transformer) -> Stacks:
    """The network's own stacks."""
    return Stacks(encoder=transformer.encoder, decoder=transformer.decoder)


def compiled_stacks(stacks: Stacks, device: torch.device, *, backend: str = INDUCTOR) -> Stacks:
    """Stacks under `torch.compile`, for batches of any shape.

    They share the weights and are compiled when they are first called. Embeddings and loss stay
    as they are, and so does whatever else calls the network.

    Args:
        stacks: From `plain_stacks`, or a working copy's.
        device: Theirs.
        backend: Of torch; "eager" traces as the others do, and generates no code.

    Raises:
        ConfigError: What torch compiles with is not there.
    """
    if backend == INDUCTOR:
        check_compiler(device)
    return Stacks(
        encoder=torch.compile(stacks.encoder, dynamic=True, backend=backend),
        decoder=torch.compile(stacks.decoder, dynamic=True, backend=backend),
    )


def check_compiler(device: torch.device) -> None:
    """Check that the compiler that `torch.compile` needs is there.

    Raises:
        ConfigError: It is not there.
    """
    if device.type == "cuda":
        if importlib.util.find_spec("triton") is None:
            raise ConfigError("run.compile is true, but the package triton is not installed")
        _check_one_runs("C", "CC", _C_COMPILERS)  # triton's launchers are C
    else:
        _check_one_runs("C++", "CXX", _CXX_COMPILERS)


def _check_one_runs(language: str, variable: str, names: Sequence[str]) -> None:
    if not any(map(shutil.which, filter(None, (os.environ.get(variable), *names)))):
        raise ConfigError(
            f"run.compile is true, but there is no {language} compiler: none of ${variable},"
            f" {', '.join(names)} can be run"
        )


def batch_loss(
    transformer: Transformer,
    batch: Batch,
    *,
    smoothing: float,
    rdrop_alpha: float = 0.0,
    stacks: Stacks | None = None,
) -> Tensor:
    """Sum of the smoothed cross-entropies of a batch, over labels that are not padding.

    On a CPU, the output projection and the loss are one function that never holds all logits.

    Args:
        transformer: The network.
        batch: B sentence pairs, on its device.
        smoothing: ε.
        rdrop_alpha: α of R-Drop: every pair goes through the network twice, side by side, with
            two dropout masks; the sum is that of `paired_loss`. 0 is one pass.
        stacks: None is the network's own.
    """
    stacks = stacks or plain_stacks(transformer)
    source_ids, target_ids = batch.source_ids, batch.target_ids
    if rdrop_alpha:
        source_ids, target_ids = source_ids.repeat(2, 1), target_ids.repeat(2, 1)  # (2B, …)
    source_mask = padding_mask(source_ids, transformer.config.pad_id)
    encoded = stacks.encoder(transformer.embed_source(source_ids), source_mask)
    hidden = stacks.decoder(transformer.embed_target(target_ids), encoded, source_mask)
    if batch.labels.device.type == "cpu" and (torch.is_grad_enabled() or not rdrop_alpha):
        return _fused_loss(
            transformer, hidden, batch.labels, smoothing=smoothing, rdrop_alpha=rdrop_alpha
        )
    logits = transformer.project(hidden)
    logits = logits.to(torch.promote_types(_output_weight(transformer).dtype, torch.float32))
    if not rdrop_alpha:
        return label_smoothed_loss(logits, batch.labels, smoothing=smoothing)
    passes = logits.view(2, -1, *logits.shape[1:])
    return paired_loss(passes, batch.labels, smoothing=smoothing, alpha=rdrop_alpha)


def _fused_loss(
    transformer: Transformer,
    hidden: Tensor,
    labels: Tensor,
    *,
    smoothing: float,
    rdrop_alpha: float,
) -> Tensor:
    """The loss of decoder states, (B, T, D) or (2B, T, D), without their logits."""
    hidden = transformer.scale_hidden(hidden)
    weight, bias = _output_weight(transformer), transformer.output_bias
    is_real = labels != IGNORED
    compute_dtype = torch.bfloat16 if torch.is_autocast_enabled("cpu") else weight.dtype
    fixed_id = transformer.config.pad_id if transformer.output_projection is None else None
    if not rdrop_alpha:
        return projected_loss(
            hidden[is_real],
            weight,
            bias,
            labels[is_real],
            smoothing=smoothing,
            compute_dtype=compute_dtype,
            fixed_id=fixed_id,
        )
    return projected_paired_loss(
        hidden.view(2, -1, *hidden.shape[1:])[:, is_real],
        weight,
        bias,
        labels[is_real],
        smoothing=smoothing,
        alpha=rdrop_alpha,
        compute_dtype=compute_dtype,
        fixed_id=fixed_id,
    )


def _output_weight(transformer: Transformer) -> Tensor:
    projection = transformer.output_projection
    return transformer.target_embedding.weight if projection is None else projection.weight
