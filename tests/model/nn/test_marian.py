"""The network against the reference implementation of Marian, with the same weights."""

import pytest
import torch

from model.config import Activation
from support.marian_weights import marian_pair


@pytest.mark.parametrize("pad_id", [0, 36])
@pytest.mark.parametrize("activation", ["silu", "relu", "gelu"])
@pytest.mark.parametrize("scale_embedding", [True, False])
@torch.no_grad()
def test_logits_are_those_of_transformers(
    pad_id: int, activation: Activation, scale_embedding: bool
) -> None:
    reference, transformer = marian_pair(
        pad_id=pad_id, activation=activation, scale_embedding=scale_embedding
    )
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(2, 36, (3, 9), generator=generator)
    target = torch.randint(2, 36, (3, 7), generator=generator)
    source[1, 5:], source[2, 1:] = pad_id, pad_id
    target[:, 0] = pad_id
    expected = reference(
        input_ids=source, attention_mask=(source != pad_id).long(), decoder_input_ids=target
    ).logits
    assert expected.std() > 0.5
    torch.testing.assert_close(transformer(source, target), expected, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_attention_maps_are_those_of_transformers() -> None:
    reference, transformer = marian_pair()
    reference.set_attn_implementation("eager")
    source = torch.tensor([[5, 6, 7, 1], [8, 1, 0, 0]])
    target = torch.tensor([[0, 4, 5], [0, 9, 8]])
    expected = reference(
        input_ids=source,
        attention_mask=(source != 0).long(),
        decoder_input_ids=target,
        output_attentions=True,
    )
    maps = transformer.attention_maps(source, target)
    for ours, theirs in (
        (maps.encoder, expected.encoder_attentions),
        (maps.decoder, expected.decoder_attentions),
        (maps.cross, expected.cross_attentions),
    ):
        for weights, expected_weights in zip(ours, theirs, strict=True):
            torch.testing.assert_close(weights, expected_weights, atol=1e-5, rtol=1e-4)
