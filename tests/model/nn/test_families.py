"""The network against the reference implementations of other families, with the same weights."""

from functools import partial

import pytest
import torch
from transformers import PreTrainedModel

from support.foreign_networks import Pair, fsmt_pair, m2m100_pair, mbart_pair, t5_pair

PAIRS = {
    "T5, tied": partial(t5_pair, is_tied=True),
    "T5, untied": partial(t5_pair, is_tied=False),
    "T5, not gated": partial(t5_pair, is_tied=True, feed_forward="relu"),
    "mBART": mbart_pair,
    "M2M100": m2m100_pair,
    "FSMT": fsmt_pair,
}
families = pytest.mark.parametrize("build", PAIRS.values(), ids=PAIRS.keys())


@families
@torch.no_grad()
def test_encoder_output_and_logits_are_those_of_transformers(build: partial[Pair]) -> None:
    reference, transformer = build()
    pad_id, generator = transformer.config.pad_id, torch.Generator().manual_seed(1)
    source = torch.randint(3, 37, (3, 150), generator=generator)  # past T5's last bucket
    if transformer.config.position == "learned":
        source = source[:, :60]
    target = torch.randint(3, 37, (3, source.shape[1] - 10), generator=generator)
    source[1, 5:], source[2, 1:] = pad_id, pad_id
    expected = _run(reference, source, target, pad_id)
    is_real = source != pad_id
    encoded = transformer.encode(source)
    torch.testing.assert_close(encoded[is_real], expected[0][is_real], atol=1e-5, rtol=1e-5)
    assert expected[1].std() > 0.3
    torch.testing.assert_close(transformer(source, target), expected[1], atol=1e-5, rtol=1e-5)


def _run(
    reference: PreTrainedModel, source: torch.Tensor, target: torch.Tensor, pad_id: int
) -> tuple[torch.Tensor, torch.Tensor]:
    output = reference(
        input_ids=source,
        attention_mask=(source != pad_id).long(),
        decoder_input_ids=target,
        use_cache=False,
    )
    return output.encoder_last_hidden_state, output.logits
