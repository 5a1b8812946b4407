"""Memory that training needs at least, and errors of running out of it, on the host or the GPU.

Owns the comparison of that least with what the device has, before any work is done: only what
cannot fit for certain is refused, since activations, text and other processes are not counted. And
owns the messages when an update or the scoring of a corpus runs out of memory.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from traceback import clear_frames

import torch

from model.cells import attention_projections, describe_cell
from model.config import ModelConfig
from model.errors import ConfigError, TrainingError
from model.system.host_memory import readable_bytes
from model.system.out_of_memory import is_out_of_memory
from model.train.config.experiment import Experiment
from model.train.config.run import RunConfig

_BYTES_OF_A_NUMBER = 4  # float32, whatever the precision of matrix products


def check_memory(experiment: Experiment, limit: int | None) -> None:
    """Refusal of a network whose weights, gradients and moments alone do not fit.

    Args:
        experiment: Its network, vocabulary and optimiser are counted.
        limit: Bytes, from `memory_limit`; None is not known, and refuses nothing.

    Raises:
        ConfigError: The message names the keys, what they need and the limit.
    """
    network, size = experiment.network, experiment.vocabulary.size
    num_weights = matrix_weights(
        network.build(source_size=size, target_size=size, is_joint=experiment.vocabulary.is_joint)
    )
    has_average = experiment.optimiser.ema_decay > 0
    num_bytes = num_weights * _BYTES_OF_A_NUMBER * (5 if has_average else 4)
    if limit is None or num_bytes <= limit:
        return
    shape = ", ".join(
        f"network.{name} {getattr(network, name)}"
        for name in ("d_model", "d_ff", "num_encoder_layers", "num_decoder_layers")
    )
    average = ", the average of optimiser.ema_decay" if has_average else ""
    raise ConfigError(
        f"{shape} and vocabulary.size {size} make {num_weights:,} weights, which take"
        f" {readable_bytes(num_bytes)} with their gradients{average} and Adam's moments; there are"
        f" at most {readable_bytes(limit)}"
    )


def matrix_weights(config: ModelConfig) -> int:
    """Weights in the matrices of a network, which are nearly all of its weights.

    Counted without building it, so that widths and depths may be of any size. Biases, norms and
    learned positions are left out.
    """
    attention = sum(item.num_outputs * item.num_inputs for item in attention_projections(config))
    cell = describe_cell(config).num_weights
    inner = config.d_model * (3 if config.gated_feed_forward else 2)
    rows = config.vocab_size
    rows += 0 if config.share_embeddings else config.output_size
    rows += 0 if config.tie_output else config.output_size
    return (
        config.num_encoder_layers * (attention + inner * config.d_ff)
        + config.num_decoder_layers * (cell + attention + inner * config.decoder_inner_width)
        + rows * config.d_model
    )


def naming_batches(
    run: RunConfig, *, update: int, device: torch.device
) -> AbstractContextManager[None]:
    """Context of an update: running out of memory frees its tensors and becomes one error.

    Raises:
        TrainingError: It did; the message names `run.batch_tokens`.
    """
    return _explaining(
        f"update {update}: out of memory on {device}; run.batch_tokens is {run.batch_tokens}:"
        f" smaller batches with a larger run.update_freq (it is {run.update_freq}) read as much"
        " an update, in a run that begins anew or with --start-from"
    )


def naming_dev_loss(
    name: str, run: RunConfig, device: torch.device
) -> AbstractContextManager[None]:
    """Context of the loss of a dev corpus, as `naming_batches` of an update.

    Raises:
        TrainingError: There was not enough memory; the message names the corpus and
            `run.batch_tokens`.
    """
    return _explaining(
        f"{name}: out of memory on {device} while its loss was computed; run.batch_tokens is"
        f" {run.batch_tokens}: smaller batches need less, in a run that begins anew or with"
        " --start-from"
    )


def naming_corpus(
    name: str, *, key: str, beam_size: int, device: torch.device
) -> AbstractContextManager[None]:
    """Context of the scoring of a corpus, as `naming_batches` of an update.

    Args:
        name: Of the corpus.
        key: Key of `run` with the number of beams.
        beam_size: Its value.
        device: Where the corpus is scored.

    Raises:
        TrainingError: There was not enough memory; the message names corpus, key and value.
    """
    return _explaining(
        f"{name}: out of memory on {device} while it was scored; run.{key} is {beam_size}: fewer"
        " beams need less, and --resume, which may have fewer, scores it again"
    )


@contextmanager
def _explaining(what: str) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        clear_frames(error.__traceback__)  # recording the error needs memory too
        problem = str(error).partition("\n")[0] or type(error).__name__
        raise TrainingError(f"{what}; {problem}") from error
