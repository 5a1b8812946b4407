"""Placement of replicas: how many engines, on which processors or device each.

Owns that there are no more than the machine has room for, which is known before anything starts,
and what "auto" means. Which processors belong together is `model.system.shares`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from model.errors import ConfigError
from model.system.cores import PROC, usable_cores
from model.system.gpu_count import num_gpus
from model.system.shares import Core, divide, read_cores
from service.cores import cores_beside_engines, engine_threads

AUTO: Literal["auto"] = "auto"

AUTO_CORES = 1
"""Cores of each replica where nobody says how many there are."""

FILL_ROWS = 4
"""Rows up to which one replica is filled before the next gets any, on processors: the most whose
step takes a quarter longer than that of one sentence at most. A step's time grows with its rows
there, so that is one sentence (`python -m benchmarks.replicas`, docs/scale.md)."""

FILL_ROWS_ON_DEVICES = 64
"""The same on GPUs, where a step of few rows costs its launches. It was not measured on several."""

_VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Processors or device of one engine.

    Attributes:
        num_threads: Threads of the network.
        processors: Where they run; None leaves that to the system.
        visible_device: The one device that it sees; None leaves it all of them.
    """

    num_threads: int
    processors: tuple[int, ...] | None = None
    visible_device: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Questions to the machine, so that tests can have another one.

    Attributes:
        cores: Those that may be used.
        num_usable: Processors' worth of time.
        num_gpus: Counts devices; asked only where they may be used.
        environment: Where `CUDA_VISIBLE_DEVICES` may be.
    """

    cores: tuple[Core, ...]
    num_usable: int
    num_gpus: Callable[[], int]
    environment: Mapping[str, str]

    @classmethod
    def of_this_process(cls) -> "Machine":
        """The machine, as this process may use it."""
        return cls(
            cores=tuple(read_cores()),
            num_usable=usable_cores(PROC),
            num_gpus=num_gpus,
            environment=os.environ,
        )


def one_engine(
    num_threads: int | None, *, num_fronts: int = 1, machine: Machine | None = None
) -> Placement:
    """Where an engine runs that is alone: on what the system gives it, and on any device.

    Args:
        num_threads: Its threads; None for as many as there are processors that nobody else needs.
        num_fronts: Front processes.
        machine: Where it runs; None for this one.
    """
    num_usable = machine.num_usable if machine else usable_cores(PROC)
    return Placement(num_threads=num_threads or engine_threads(num_usable, num_fronts=num_fronts))


def place_replicas(
    replicas: int | Literal["auto"],
    *,
    device: Literal["auto", "cpu", "cuda"],
    num_threads: int | None,
    num_fronts: int = 1,
    machine: Machine | None = None,
) -> tuple[Placement, ...]:
    """Where every replica runs: each on a device of its own, or on its share of the processors.

    A replica never has less than one core. Of what is left the fronts and their owner have a core
    each, as far as it goes, and only then a replica has a second one.

    Args:
        replicas: How many there are; "auto" for one a device, or `AUTO_CORES` cores each where
            there is none.
        device: What networks run on.
        num_threads: Threads of each; None for as many as its share has cores.
        num_fronts: Front processes.
        machine: Where they run; None for this one.

    Raises:
        ConfigError: There are fewer devices or processors.
    """
    alone = partial(one_engine, num_threads, num_fronts=num_fronts)
    if replicas == 1:
        return (alone(machine=machine),)
    machine = machine or Machine.of_this_process()
    num_beside = cores_beside_engines(num_fronts)
    num_devices = 0 if device == "cpu" else machine.num_gpus()
    if num_devices or device == "cuda":
        num_replicas = max(num_devices, 1) if replicas == AUTO else replicas
        if num_replicas == 1:  # whatever is wrong with the device, the engine says it
            return (alone(machine=machine),)
        threads = num_threads or max(1, (machine.num_usable - num_beside) // num_replicas)
        return _on_devices(num_replicas, num_devices, threads, machine.environment)
    num_replicas = _auto(machine, num_beside) if replicas == AUTO else replicas
    if num_replicas == 1:
        return (alone(machine=machine),)
    return _on_processors(num_replicas, num_threads, num_beside, machine)


def default_fill_rows(placements: Sequence[Placement]) -> int:
    """Default of the rows up to which one replica is filled before the next gets any."""
    on_devices = any(one.visible_device is not None for one in placements)
    return FILL_ROWS_ON_DEVICES if on_devices else FILL_ROWS


def _on_devices(
    num_replicas: int, num_devices: int, num_threads: int, environment: Mapping[str, str]
) -> tuple[Placement, ...]:
    if num_replicas > num_devices:
        raise ConfigError(
            f"DRAGOMAN_REPLICAS is {num_replicas}; {num_devices} GPUs may be used here, and"
            " each replica needs one"
        )
    named = [name.strip() for name in environment.get(_VISIBLE, "").split(",")]
    names = named if len(named) >= num_replicas else [str(place) for place in range(num_devices)]
    return tuple(
        Placement(num_threads=num_threads, visible_device=names[place])
        for place in range(num_replicas)
    )


def _on_processors(
    num_replicas: int, num_threads: int | None, num_beside: int, machine: Machine
) -> tuple[Placement, ...]:
    if num_replicas > machine.num_usable:
        raise ConfigError(
            f"DRAGOMAN_REPLICAS is {num_replicas}; {machine.num_usable} processors may be used"
            " here, and each replica needs one"
        )
    shares = divide(machine.cores, num_replicas, num_usable=machine.num_usable, num_left=num_beside)
    return tuple(
        Placement(
            num_threads=num_threads or share.num_threads,
            processors=None if (num_threads or 0) > share.num_threads else share.processors,
        )
        for share in shares
    )


def _auto(machine: Machine, num_beside: int) -> int:
    """As many as there are cores for beside those of the fronts and their owner."""
    num_cores = min(machine.num_usable, len(machine.cores))
    return max(1, (num_cores - num_beside) // AUTO_CORES)
