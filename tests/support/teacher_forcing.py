"""What our network says of given sentences, one at a time: the oracle of other engines' scores."""

from collections.abc import Sequence

import torch
from torch import Tensor

from model.nn.transformer import Transformer


@torch.inference_mode()
def next_log_probs(
    transformer: Transformer,
    source_ids: Sequence[int],
    prefix_ids: Sequence[int],
    target_ids: Sequence[int],
    *,
    suppressed_ids: Sequence[int] = (),
) -> Tensor:
    """Log probabilities before every target token and after the last, (T + 1, V) float64.

    Suppressed ids are taken out before the softmax, so that the others share their probability.
    """
    inputs = torch.tensor([[*prefix_ids, *target_ids]])
    logits = transformer(torch.tensor([list(source_ids)]), inputs)[0].double()
    logits[:, list(suppressed_ids)] = -torch.inf
    return logits[len(prefix_ids) - 1 :].log_softmax(dim=-1)


def token_log_probs(
    transformer: Transformer,
    source_ids: Sequence[int],
    prefix_ids: Sequence[int],
    target_ids: Sequence[int],
    *,
    suppressed_ids: Sequence[int] = (),
) -> list[float]:
    """The log probability of every target token; EOS is one if it is among them."""
    rows = next_log_probs(
        transformer, source_ids, prefix_ids, target_ids[:-1], suppressed_ids=suppressed_ids
    )
    return [float(row[token]) for row, token in zip(rows, target_ids, strict=True)]
