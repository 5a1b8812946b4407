"""Scores on held-out text during a run.

Owns the dev loss. Does not own when it is asked for.
"""

import torch

from model.nn.transformer import Transformer
from model.train.batching import make_batch, plan_epoch
from model.train.data import TokenisedPairs
from model.train.experiment import Precision
from model.train.trainer import batch_loss, compute_context


@torch.no_grad()
def dev_loss(
    transformer: Transformer,
    pairs: TokenisedPairs,
    *,
    batch_tokens: int,
    precision: Precision,
    start_id: int,
) -> float:
    """Cross-entropy per target token without smoothing, in nats; e to it is the perplexity."""
    device = next(transformer.parameters()).device
    was_training = transformer.training
    transformer.eval()
    plan = plan_epoch(
        pairs.source_lengths,
        pairs.target_lengths,
        copies=pairs.copies,
        max_tokens=batch_tokens,
        seed=0,
        epoch=0,
    )
    total = 0.0
    for indices in plan:
        batch = make_batch(
            pairs, indices, pad_id=transformer.config.pad_id, start_id=start_id
        ).to(device)
        with compute_context(device, precision):
            total += batch_loss(transformer, batch, smoothing=0.0).item()
    transformer.train(was_training)
    return total / int(pairs.target_lengths.sum())
