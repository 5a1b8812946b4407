"""Refusal of workers that are not about to do the same.

Owns what is compared, and when two workers differ in it. Gradients are summed whatever they are
of: workers of two experiments, texts or states would go on without an error, each with a network of
its own. Does not own the communication.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass

import torch
from torch import Tensor

from model.errors import one_line
from model.nn.transformer import Transformer
from model.train.config.experiment import Experiment
from model.train.loop.distributed import Group
from model.train.records.provenance import package_versions
from model.train.saved.averaging import MovingAverage
from model.train.saved.state import Progress

_ABSENT = "absent"
_MAX_SHOWN = 64
"""Characters of a value in an error: a SHA-256 is whole."""

_OF_THE_FIRST = frozenset({"snapshot_updates", "scoring"})
"""Counters that only the first worker looks at."""


def require_same_run(
    group: Group, device: torch.device, experiment: Experiment, *, resume: bool
) -> None:
    """Compare what the workers were started with, before the first of them does anything.

    Args:
        group: The workers; each calls this.
        device: Of this one.
        experiment: As it was read.
        resume: Whether the run goes on from a state.

    Raises:
        TrainingError: Two differ, see `require_same`.
    """
    versions = {
        f"the version of {name}": str(found).partition("+")[0]
        for name, found in package_versions().items()
    }
    given = {"--resume": "given" if resume else "not given"}
    require_same(group, device, {**versions, **given, **dict(_flat(experiment))})


def require_same_text(group: Group, device: torch.device, ingredients: Mapping[str, str]) -> None:
    """Compare what the workers' training text is made of.

    Args:
        group: The workers; each calls this.
        device: Of this one.
        ingredients: From `model.train.data.corpora.text_ingredients`.

    Raises:
        TrainingError: Two differ, see `require_same`.
    """
    facts = {f"the training text's {name}": value for name, value in ingredients.items()}
    require_same(group, device, facts)


def require_same_state(
    group: Group,
    progress: Progress,
    *,
    transformer: Transformer,
    optimiser: torch.optim.Optimizer,
    average: MovingAverage | None,
) -> None:
    """Compare the states that the workers have restored, to the bit.

    Args:
        group: The workers; each calls this.
        progress: Counters and position in the data.
        transformer: With the restored weights.
        optimiser: With the restored moments.
        average: The restored average, if the run has one.

    Raises:
        TrainingError: Two differ, see `require_same`.
    """
    if group.size == 1:
        return
    moments = {
        f"{number} {name}": value
        for number, values in optimiser.state_dict()["state"].items()
        for name, value in values.items()
    }
    averaged = {} if average is None else average.state().weights
    counters = {
        f"the state's {name}": repr(value)
        for name, value in asdict(progress).items()
        if name not in _OF_THE_FIRST
    }
    sums = {
        "the state's weights": _digest(transformer.state_dict()),
        "the state's moments": _digest(moments),
        "the state's average": _digest(averaged),
    }
    require_same(group, next(transformer.parameters()).device, {**counters, **sums})


def require_same(group: Group, device: torch.device, facts: Mapping[str, str]) -> None:
    """Compare named values of all workers.

    Args:
        group: The workers; each calls this.
        device: Of this one.
        facts: Its values, by the names that an error says.

    Raises:
        TrainingError: A worker has another value than the first, and the message names the
            worker, the first such name and both values; on all but the first worker,
            `FirstWorkerError`.
    """
    first, *others = map(json.loads, group.gather(json.dumps(facts).encode(), device))
    for rank, found in enumerate(others, start=1):
        for name in {**first, **found}:
            values = [of.get(name, _ABSENT) for of in (found, first)]
            if values[0] != values[1]:
                there, here = (one_line(v, max_characters=_MAX_SHOWN) for v in values)
                raise group.common_error(
                    f"worker {rank} is not about to do what worker 0 is: {name} is {there} there,"
                    f" and {here} here; all of them need the same flags, experiment, text and state"
                )


def _flat(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """The values of an experiment by their keys, such as "data.train[0].name"."""
    if is_dataclass(value):
        for item in fields(value):
            name = f"{key}.{item.name}".lstrip(".")
            yield from _flat(getattr(value, item.name), name)
    elif isinstance(value, tuple) and any(map(is_dataclass, value)):
        for number, item in enumerate(value):
            yield from _flat(item, f"{key}[{number}]")
    else:
        yield key, repr(value)


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """Hash of the bits of tensors, their names and shapes."""
    found = hashlib.blake2b(digest_size=16)
    for name, tensor in tensors.items():
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
