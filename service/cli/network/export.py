"""`dragoman export`: a checkpoint for another engine, the same weights in its format.

Owns the flags and the printing. The formats are `model.exchange`'s.
"""

import argparse
from pathlib import Path

from model.errors import ConfigError
from service.cli.arguments.directions import single_checkpoint

HELP = "write a checkpoint in the format of Hugging Face, CTranslate2 or Marian"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("checkpoint", type=Path, help="checkpoint directory")
    parser.add_argument("output", type=Path, help="directory to write, which must not exist yet")
    parser.add_argument(
        "--to",
        choices=("huggingface", "ctranslate2", "marian"),
        required=True,
        help="a folder of transformers, a CTranslate2 model (needs dragoman[bench]), or Marian's"
        " own files",
    )
    parser.add_argument(
        "--quantization",
        metavar="TYPE",
        help="how CTranslate2 stores the weights: int8, float16, … (float32)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Load, write, print where.

    Raises:
        CheckpointError: The checkpoint cannot be used, or the output exists.
        ConfigError: The flags are impossible, or CTranslate2 is missing.
        UnsupportedVariantError: The format cannot express the network.
    """
    if arguments.quantization is not None and arguments.to != "ctranslate2":
        raise ConfigError(
            f"--quantization is {arguments.quantization}; only --to ctranslate2 takes one"
        )
    from model.checkpoint.weights import load_checkpoint
    from model.exchange.export.ctranslate2 import export_ctranslate2
    from model.exchange.export.huggingface.exporter import export_huggingface
    from model.exchange.export.marian.exporter import export_marian

    checkpoint = load_checkpoint(single_checkpoint(arguments.checkpoint))
    if arguments.to == "huggingface":
        export_huggingface(checkpoint, arguments.output)
    elif arguments.to == "marian":
        export_marian(checkpoint, arguments.output)
    else:
        export_ctranslate2(checkpoint, arguments.output, quantization=arguments.quantization)
    print(arguments.output)
    return 0
