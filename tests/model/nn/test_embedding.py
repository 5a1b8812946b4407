"""Token embeddings."""

import torch

from model.config import ModelConfig
from model.nn.embedding import TokenEmbedding

PAD = 2


def config(**changes: object) -> ModelConfig:
    shape = {"vocab_size": 9, "d_model": 16, "num_heads": 4, "d_ff": 24, "pad_id": PAD}
    depth = {"num_encoder_layers": 2, "num_decoder_layers": 1}
    return ModelConfig(**shape | depth | changes)


def test_token_embeddings_are_scaled_by_the_root_of_the_width() -> None:
    embedding = TokenEmbedding(config(), vocab_size=9)
    torch.nn.init.normal_(embedding.weight)  # until then it is whatever the memory held
    ids = torch.tensor([[3, 4]])
    torch.testing.assert_close(embedding(ids), embedding.weight[ids] * 4.0)
    unscaled = TokenEmbedding(config(scale_embedding=False), vocab_size=9)
    torch.nn.init.normal_(unscaled.weight)
    assert torch.equal(unscaled(ids), unscaled.weight[ids])


def test_the_padding_embedding_gets_no_gradient() -> None:
    embedding = TokenEmbedding(config(), vocab_size=9)
    embedding(torch.tensor([[3, PAD]])).sum().backward()
    assert embedding.weight.grad is not None
    assert not embedding.weight.grad[PAD].any()
    assert embedding.weight.grad[3].all()
