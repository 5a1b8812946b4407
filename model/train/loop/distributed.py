"""Data-parallel training of one network in several processes, one GPU each, started by `torchrun`.

Owns the communication. An update's batches are divided among the workers and the gradients
summed, so the number of workers changes the speed of a run and not its results (dropout masks
aside). Rank 0 alone writes files, scores and decides when to stop.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import numpy as np
import torch

# torch imports this module by itself, with its compiler, when an optimiser first steps. Functions
# in it have the process group of that moment as a default argument, so that leaving the group
# would not end it: its threads would outlive the interpreter, and now and then abort the process.
# Imported here, before there is a group, they hold none.
import torch.distributed.nn.functional
from torch import Tensor, distributed, nn
from torch.distributed.rendezvous import rendezvous

from model.errors import ConfigError, DeviceError, TrainingError

T = TypeVar("T")

_TIMEOUT = timedelta(days=20)
"""How long a worker waits for another: for ever, as far as a run is concerned.

The others wait for hours while rank 0 prepares text, and again while it scores dev text. A worker
that ends meanwhile is noticed all the same: Gloo sees its connections close, and torchrun ends the
others. In milliseconds it still is a C int, which is what sockets are waited for in.
"""

_JOIN_TIMEOUT = timedelta(minutes=10)
"""How long a worker waits until all of them are connected."""


class FirstWorkerError(TrainingError):
    """Error on the other workers when the first worker, or one of them, has failed.

    The worker that failed reports why.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The workers of a run; with one worker, methods do nothing or return their argument.

    Communication raises `TrainingError` when another worker has ended.

    Attributes:
        rank: Number of this worker, from 0.
        size: Number of workers.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this worker has rank 0, which writes files, scores and stops the run."""
        return self.rank == 0

    def shard(self, items: Sequence[T]) -> Sequence[T]:
        """This worker's share of `items`."""
        return items[self.rank :: self.size]

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace every gradient by its sum over the workers; a missing one counts as zero."""
        if self.size == 1:
            return
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        for parameter in trained:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        flat = torch.cat([p.grad.flatten() for p in trained if p.grad is not None])
        with self._naming_lost_workers():
            distributed.all_reduce(flat)
        begin = 0
        for parameter in trained:
            assert parameter.grad is not None
            end = begin + parameter.numel()
            parameter.grad.copy_(flat[begin:end].view_as(parameter))
            begin = end

    def sum(self, value: float, device: torch.device) -> float:
        """The sum of a number over the workers."""
        if self.size == 1:
            return value
        cell = torch.tensor([value], dtype=torch.float64, device=device)
        with self._naming_lost_workers():
            distributed.all_reduce(cell)
        return cell.item()

    def broadcast_number(self, value: float, device: torch.device) -> float:
        """The first worker's value."""
        if self.size == 1:
            return value
        cell = torch.tensor([value], dtype=torch.float64, device=device)
        with self._naming_lost_workers():
            distributed.broadcast(cell, src=0)
        return cell.item()

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Replace tensors, as many and of the same shapes on all workers, by the first worker's."""
        if self.size == 1:
            return
        with self._naming_lost_workers():
            for tensor in tensors:
                distributed.broadcast(tensor.detach(), src=0)

    def gather(self, data: bytes, device: torch.device) -> list[bytes]:
        """Every worker's bytes, however many they are, by rank."""
        if self.size == 1:
            return [data]
        with self._naming_lost_workers():
            size = torch.tensor([len(data)], device=device)
            sizes = [torch.empty_like(size) for _ in range(self.size)]
            distributed.all_gather(sizes, size)
            nums_bytes = [int(item) for item in sizes]
            padded = torch.zeros(max(nums_bytes), dtype=torch.uint8)
            padded[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
            own = padded.to(device)
            found = [torch.empty_like(own) for _ in range(self.size)]
            distributed.all_gather(found, own)
        return [
            item[:num_bytes].cpu().numpy().tobytes()
            for item, num_bytes in zip(found, nums_bytes, strict=True)
        ]

    def seed_dropout(self, seed: int, update: int) -> None:
        """Give every worker but the first dropout masks of its own for one update.

        They depend on nothing but the arguments, so a resumed run has them again; the first
        worker's generator is part of the saved state.
        """
        if not self.is_first:
            words = np.random.SeedSequence([seed, self.rank, update]).generate_state(1)
            torch.manual_seed(int(words[0]))

    def leave(self) -> None:
        """End the process group, on all workers at once; the first worker goes on alone."""
        if self.size > 1:
            with self._naming_lost_workers():
                distributed.barrier()
            distributed.destroy_process_group()

    def common_error(self, message: str) -> TrainingError:
        """An error that all workers reach, reported once: by the first.

        On the others it is a `FirstWorkerError`.
        """
        return (TrainingError if self.is_first else FirstWorkerError)(message)

    @contextmanager
    def _naming_lost_workers(self) -> Iterator[None]:
        """Context of communication: a lost worker is one error.

        Raises:
            TrainingError: One of them has ended; on all but the first, `FirstWorkerError`.
        """
        try:
            yield
        except RuntimeError as error:  # Gloo's and NCCL's
            raise self.common_error(
                "another worker has ended; if its log does not say why, the system killed it"
                " (out of memory?)"
            ) from error

    @contextmanager
    def first_worker_first(self, device: torch.device) -> Iterator[None]:
        """Context that the first worker runs before the others.

        Raises:
            FirstWorkerError: On the others, if it had an error there or was stopped; they do not
                run the block.
        """
        if not self.is_first and not self.broadcast_number(0.0, device):
            raise FirstWorkerError("the first worker has ended, and says why")
        is_done = False
        try:
            yield
            is_done = True
        finally:
            if self.is_first:
                self.broadcast_number(float(is_done), device)


@contextmanager
def joined_group(environment: Mapping[str, str], device: torch.device) -> Iterator[Group]:
    """The group of workers that `torchrun` started, or of one worker without it.

    Args:
        environment: With torchrun's variables.
        device: This worker's, from `local_device`. Workers on CUDA communicate through NCCL,
            others through Gloo.

    Raises:
        ConfigError: torchrun's variables are incomplete or no numbers, or the workers cannot meet
            where they say.
    """
    if _number(environment, "WORLD_SIZE", default="1", minimum=1) == 1:
        yield Group()
        return
    missing = [
        name
        for name in ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
        if name not in environment
    ]
    if missing:
        raise ConfigError(f"WORLD_SIZE is set but {', '.join(missing)} is not; use torchrun")
    for name in ("RANK", "LOCAL_RANK"):
        _number(environment, name)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # NCCL and compiled kernels use the current one
    _join("nccl" if device.type == "cuda" else "gloo", environment)
    try:
        yield Group(rank=distributed.get_rank(), size=distributed.get_world_size())
    finally:
        # Not left in order: an error. NCCL would wait here for the others, which may be waiting
        # for this worker; so it ends as it is, and torchrun ends the others.
        if distributed.is_initialized() and device.type != "cuda":
            distributed.destroy_process_group()


def _number(
    environment: Mapping[str, str], name: str, *, default: str = "0", minimum: int = 0
) -> int:
    """Value of one of torchrun's variables.

    Raises:
        ConfigError: It is no whole number, or below the minimum.
    """
    value = environment.get(name, default)
    try:
        number = int(value)
    except ValueError:
        number = -1
    if number < minimum:
        raise ConfigError(
            f"{name} is {value!r}; torchrun sets it to a whole number, at least {minimum}"
        )
    return number


def _join(backend: str, environment: Mapping[str, str]) -> None:
    """Make the process group of all workers, which connect to an address and a port of rank 0.

    Raises:
        ConfigError: They cannot.
    """
    address, port = environment["MASTER_ADDR"], environment["MASTER_PORT"]
    try:
        store, rank, size = next(rendezvous("env://", timeout=_JOIN_TIMEOUT))
        store.set_timeout(_TIMEOUT)
        distributed.init_process_group(
            backend, store=store, rank=rank, world_size=size, timeout=_TIMEOUT
        )
    except (RuntimeError, ValueError) as error:
        first_line = str(error).partition("\n")[0]
        raise ConfigError(
            f"the workers cannot meet at {address}, port {port} (MASTER_ADDR, MASTER_PORT):"
            f" {first_line}"
        ) from error


def local_device(device: torch.device) -> torch.device:
    """This worker's own GPU when there are several, else `device`.

    Raises:
        ConfigError: `LOCAL_RANK` is no number.
        DeviceError: This machine has more workers than GPUs.
    """
    if device.type != "cuda" or "LOCAL_RANK" not in os.environ:
        return device
    rank = _number(os.environ, "LOCAL_RANK")
    num_devices = torch.cuda.device_count()
    if rank >= num_devices:
        raise DeviceError(
            f"LOCAL_RANK is {rank}, and this machine has {num_devices} GPUs; start no more workers"
            " on it than that (torchrun --nproc-per-node)"
        )
    return torch.device("cuda", rank)
