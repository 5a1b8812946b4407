"""A checkpoint as Marian's own files: the same weights for the engine that students are made for.

Owns the names of Marian's parameters and the options that describe the network there. Post-norm
networks with tied embeddings only. Marian adds its own sinusoids and starts from the zero vector,
so a network with other positions or another start is as fast there, and says other things.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from model.checkpoint.weights import Checkpoint
from model.config import ModelConfig

Floats = npt.NDArray[np.float32]

_ATTENTION = {"q_proj": ("Wq", "bq"), "k_proj": ("Wk", "bk"), "v_proj": ("Wv", "bv")}
_ATTENTION |= {"out_proj": ("Wo", "bo")}
_FEED_FORWARD = {"up_proj": ("ffn_W1", "ffn_b1"), "down_proj": ("ffn_W2", "ffn_b2")}
_PARTS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "self_attention": {key: (f"self_{w}", f"self_{b}") for key, (w, b) in _ATTENTION.items()},
    "cross_attention": {
        key: (f"context_{w}", f"context_{b}") for key, (w, b) in _ATTENTION.items()
    },
    "feed_forward": _FEED_FORWARD,
    "ssru": {"candidate_proj": ("rnn_W", ""), "forget_proj": ("rnn_Wf", "rnn_bf")},
}
_NORMS = {
    "self_attention_norm": "self_Wo_ln",
    "cross_attention_norm": "context_Wo_ln",
    "feed_forward_norm": "ffn_ffn_ln",
    "ssru_norm": "rnn_ffn_ln",
}


def write_marian(checkpoint: Checkpoint, output: Path, *, python: str) -> None:
    """Write model.npz, model.bin (intgemm8) and vocabulary.json.

    Token i of the checkpoint, of those that are text, is `t<i>` in the vocabulary.

    Args:
        checkpoint: Its padding is token 0, its EOS token 1, its unknown token 2.
        output: A directory that exists.
        python: The interpreter of an environment with pymarian.

    Raises:
        CalledProcessError: Marian did not convert it.
    """
    parameters = dict(marian_parameters(checkpoint))
    parameters["special:model.yml"] = np.frombuffer(
        _options(checkpoint.manifest.network).encode() + b"\0", dtype=np.int8
    )
    np.savez(output / "model.npz", **parameters)  # type: ignore[arg-type]  # its stubs want one kind
    names = ["</s>", "<unk>", *(f"t{i}" for i in range(3, checkpoint.manifest.network.vocab_size))]
    (output / "vocabulary.json").write_text(
        json.dumps({name: index for index, name in enumerate(names)}), encoding="utf-8"
    )
    program = str(Path(python).with_name("pymarian"))
    command = [program, "convert", "-f", str(output / "model.npz"), "-t", str(output / "model.bin")]
    subprocess.run([*command, "--gemm-type", "intgemm8"], check=True, capture_output=True)


def marian_parameters(checkpoint: Checkpoint) -> Iterator[tuple[str, Floats]]:
    """Marian's name of every parameter, and its values as Marian has them: inputs first."""
    state = {
        name: tensor.float().numpy() for name, tensor in checkpoint.transformer.state_dict().items()
    }
    yield "Wemb", state["source_embedding.weight"][1:]  # there is no padding
    yield "decoder_ff_logit_out_b", state["output_bias"][None, 1:]
    for name, values in state.items():
        side, _, rest = name.partition(".layers.")
        if rest:
            yield _parameter(side, rest, values)


def _parameter(side: str, rest: str, values: Floats) -> tuple[str, Floats]:
    """Of a layer's weight: `0.self_attention.q_proj.weight` → `encoder_l1_self_Wq`."""
    number, part, *below = rest.split(".")
    layer, kind = f"{side}_l{int(number) + 1}", below[-1]
    if part in _NORMS:
        return f"{layer}_{_NORMS[part]}_{'scale' if kind == 'weight' else 'bias'}", values[None]
    weight, bias = _PARTS[part][below[0]]
    if kind == "bias":
        return f"{layer}_{bias}", values[None]
    return f"{layer}_{weight}", np.ascontiguousarray(values.T)


def _options(network: ModelConfig) -> str:
    """The YAML that Marian keeps in its models; what it does not say is Marian's default."""
    options = {
        "type": "transformer",
        "dim-emb": network.d_model,
        "dim-vocabs": [network.vocab_size - 1] * 2,
        "enc-depth": network.num_encoder_layers,
        "dec-depth": network.num_decoder_layers,
        "tied-embeddings-all": True,
        "transformer-heads": network.num_heads,
        "transformer-dim-ffn": network.d_ff,
        "transformer-ffn-activation": "swish" if network.activation == "silu" else "relu",
        "transformer-preprocess": "",
        "transformer-postprocess": "dan",
        "transformer-postprocess-emb": "d",
        "transformer-decoder-autoreg": (
            "rnn" if network.decoder_cell == "ssru" else "self-attention"
        ),
        "dec-cell": "ssru",
        "version": "v1.12.42",
    }
    return "\n".join(f"{name}: {json.dumps(value)}" for name, value in options.items()) + "\n"
