"""A small random Marian network of `transformers` and our Transformer with the same weights.

The reference implementation of the network for every test that wants one. Weights are drawn
wider than at the start of training, norms and biases included, so that logits differ clearly and
a bias or norm that is mapped wrongly shows.
"""

import torch
from torch import nn
from transformers import MarianConfig, MarianMTModel

from model.config import Activation, ModelConfig, SpecialTokens
from model.exchange.export.huggingface.marian import marian_config, marian_tables
from model.exchange.imports.huggingface.bart import FINAL_BIAS, bart_modules
from model.nn.transformer import Transformer


def marian_pair(
    *,
    vocab_size: int = 37,
    d_model: int = 16,
    num_heads: int = 4,
    d_ff: int = 24,
    num_encoder_layers: int = 2,
    num_decoder_layers: int = 3,
    activation: Activation = "silu",
    scale_embedding: bool = True,
    pad_id: int = 0,
    eos_id: int = 1,
    max_length: int = 64,
    spread: float = 0.3,
    seed: int = 0,
) -> tuple[MarianMTModel, Transformer]:
    """Both networks in evaluation mode and float32, with `spread`-wide random weights.

    The decoder of the first starts with the padding token and forces EOS at `max_length`, as
    Opus-MT models do. `max_length` bounds its position table as well.
    """
    network = ModelConfig(
        vocab_size=vocab_size,
        d_model=d_model,
        num_heads=num_heads,
        d_ff=d_ff,
        num_encoder_layers=num_encoder_layers,
        num_decoder_layers=num_decoder_layers,
        activation=activation,
        scale_embedding=scale_embedding,
        pad_id=pad_id,
    )
    tokens = SpecialTokens(pad_id=pad_id, eos_id=eos_id, unk_id=2, start_id=pad_id)
    settings = marian_config(network, tokens, max_positions=max_length)
    reference = MarianMTModel(MarianConfig(**settings))
    _randomise(reference, spread=spread, pad_id=pad_id, seed=seed)
    transformer = Transformer(network)
    theirs = reference.state_dict()
    for name, weight in transformer.state_dict().items():
        value = theirs[_marian_name(name, network)]
        weight.copy_(value[0] if name == "output_bias" else value)
    return reference.eval(), transformer.eval()


def _randomise(reference: MarianMTModel, *, spread: float, pad_id: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for part in reference.modules():
            for name, parameter in part.named_parameters(recurse=False):
                if parameter.requires_grad:  # the position tables are frozen
                    centre = 1.0 if isinstance(part, nn.LayerNorm) and name == "weight" else 0.0
                    parameter.normal_(centre, spread, generator=generator)
        reference.get_input_embeddings().weight[pad_id] = 0.0
        reference.final_logits_bias.normal_(0.0, spread, generator=generator)


def _marian_name(name: str, network: ModelConfig) -> str:
    """Marian's name for one of our weights, the output bias (of one more dimension) included."""
    tables = {ours: names[0] for ours, names in marian_tables(network).items()}
    if name in tables or name == "output_bias":
        return tables.get(name, FINAL_BIAS)
    module, _, kind = name.rpartition(".")
    return f"{dict(bart_modules(network))[module]}.{kind}"
