"""Shapes of networks by name, for `network.preset`; what an experiment says besides wins.

Owns the names and what is known to work under them. Which keys there are and what they may be is
`model.train.config.experiment.NetworkConfig`.
"""

from collections.abc import Mapping

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
    "tiny": {  # Wu et al. 2021, for some ten thousand pairs: `model.config.tiny`
        "d_model": 128,
        "num_heads": 4,
        "d_ff": 256,
        "num_encoder_layers": 4,
        "num_decoder_layers": 4,
        "dropout": 0.3,
    },
}
