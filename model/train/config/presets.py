"""Shapes of networks by name: of an experiment's `network.preset`, and for anything else.

Owns the names and what is known to work under them. Which keys there are and what they may be is
`model.train.config.network.NetworkConfig`, whose defaults are those of `ModelConfig`.
"""

from collections.abc import Mapping
from dataclasses import replace

from model.config import ModelConfig

NETWORK_PRESETS: Mapping[str, Mapping[str, object]] = {
    "base": {},  # Vaswani et al. 2017, table 3: what every key is by itself
    "base-12-1": {  # Kasai et al. 2021, who report the quality of `base` for it
        "num_encoder_layers": 12,
        "num_decoder_layers": 1,
        "norm_placement": "pre",  # twelve layers with the norm behind each hardly learn
    },
    "small-6-2": {  # for a student on a CPU
        "d_model": 256,
        "num_heads": 4,
        "d_ff": 1024,
        "num_encoder_layers": 6,
        "num_decoder_layers": 2,
        "norm_placement": "pre",
    },
    "tiny": {  # Wu et al. 2021, for some ten thousand pairs
        "d_model": 128,
        "num_heads": 4,
        "d_ff": 256,
        "num_encoder_layers": 4,
        "num_decoder_layers": 4,
        "dropout": 0.3,
    },
}


def preset_network(name: str, *, vocab_size: int) -> ModelConfig:
    """The network of a preset over one vocabulary for both sides."""
    values = NETWORK_PRESETS[name]
    return replace(ModelConfig(vocab_size=vocab_size), **values)  # type: ignore[arg-type]  # checked by ModelConfig
