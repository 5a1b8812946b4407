"""A checkpoint as Marian's own files: the same weights for the engine that students are made for.

Owns what is otherwise than in an export (`model.exchange.export.marian`), which refuses such a
network: padding, which is token 0 here, is left out, and tokens are words. Marian adds its own
sinusoids, so a network with other positions is as fast there, and says other things.
"""

import json
import subprocess
from pathlib import Path

import numpy as np

from model.checkpoint.weights import Checkpoint
from model.exchange.export.marian.exporter import MODEL, options_array
from model.exchange.export.marian.network import marian_options, marian_parameters
from model.exchange.imports.marian.files import OPTIONS_TENSOR

_ALL_BUT_PADDING = slice(1, None)


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
    network = checkpoint.manifest.network
    parameters = marian_parameters(
        checkpoint.transformer, rows=(_ALL_BUT_PADDING, _ALL_BUT_PADDING)
    )
    arrays = {name: np.ascontiguousarray(values.numpy()) for name, values in parameters}
    options = marian_options(network, rows=(network.vocab_size - 1,) * 2)
    arrays[OPTIONS_TENSOR] = options_array(options)
    np.savez(output / MODEL, **arrays)  # type: ignore[arg-type]  # its stubs want one kind
    names = ["</s>", "<unk>", *(f"t{i}" for i in range(3, network.vocab_size))]
    (output / "vocabulary.json").write_text(
        json.dumps({name: index for index, name in enumerate(names)}), encoding="utf-8"
    )
    program = str(Path(python).with_name("pymarian"))
    command = [program, "convert", "-f", str(output / MODEL), "-t", str(output / "model.bin")]
    subprocess.run([*command, "--gemm-type", "intgemm8"], check=True, capture_output=True)
