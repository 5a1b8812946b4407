"""A small random Marian network of `transformers` and our Transformer with the same weights.

The reference implementation of the network for every test that wants one. Weights are drawn
wider than at the start of training, norms and biases included, so that logits differ clearly and
a bias or norm that is mapped wrongly shows.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from model.config import Activation, ModelConfig
from model.nn.transformer import Transformer

_HF_ACTIVATIONS: dict[Activation, str] = {"relu": "relu", "gelu": "gelu", "silu": "swish"}


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
    reference = MarianMTModel(
        MarianConfig(
            vocab_size=vocab_size,
            d_model=d_model,
            encoder_layers=num_encoder_layers,
            decoder_layers=num_decoder_layers,
            encoder_attention_heads=num_heads,
            decoder_attention_heads=num_heads,
            encoder_ffn_dim=d_ff,
            decoder_ffn_dim=d_ff,
            max_position_embeddings=max_length,
            activation_function=_HF_ACTIVATIONS[activation],
            scale_embedding=scale_embedding,
            static_position_embeddings=True,
            pad_token_id=pad_id,
            eos_token_id=eos_id,
            bos_token_id=None,
            decoder_start_token_id=pad_id,
            forced_eos_token_id=eos_id,
        )
    )
    _randomise(reference, spread=spread, pad_id=pad_id, seed=seed)
    transformer = Transformer(
        ModelConfig(
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
    )
    transformer.load_state_dict(dict(marian_state(reference)))
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


def marian_state(reference: MarianMTModel) -> Iterator[tuple[str, Tensor]]:
    """The weights of `reference` under our names."""
    state = reference.state_dict()
    yield "source_embedding.weight", state["model.shared.weight"]
    yield "output_bias", state["final_logits_bias"][0]
    for side in ("encoder", "decoder"):
        names = dict(_LAYER_NAMES)
        if side == "decoder":
            names |= {
                theirs.replace("self_attn", "encoder_attn"): ours.replace("self_", "cross_")
                for theirs, ours in _LAYER_NAMES.items()
                if theirs.startswith("self_attn")
            }
        for number in range(len(getattr(reference.model, side).layers)):
            for theirs, ours in names.items():
                for kind in ("weight", "bias"):
                    weight = state[f"model.{side}.layers.{number}.{theirs}.{kind}"]
                    yield f"{side}.layers.{number}.{ours}.{kind}", weight


_LAYER_NAMES = {
    "self_attn.q_proj": "self_attention.q_proj",
    "self_attn.k_proj": "self_attention.k_proj",
    "self_attn.v_proj": "self_attention.v_proj",
    "self_attn.out_proj": "self_attention.out_proj",
    "self_attn_layer_norm": "self_attention_norm",
    "fc1": "feed_forward.up_proj",
    "fc2": "feed_forward.down_proj",
    "final_layer_norm": "feed_forward_norm",
}
