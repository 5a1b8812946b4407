"""The engine of a cluster: the blocks of a job through actors of Ray.

Owns the driver: how a cluster is reached, which workers there are, what happens when one dies or
hangs.
Which worker has which block is `assignment`'s, what is finished says the output folder: Ray is
asked to run calls, and neither to retry them nor to keep their results. So a driver that is killed
leaves nothing but finished blocks, and the next one goes on from these. Needs ray (extra `ray`).
"""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from model.errors import BulkError, ConfigError
from model.offline.bulk.assignment import Assignment
from model.offline.bulk.blocks import Block, Receipt
from model.offline.bulk.places import reason_of
from model.offline.bulk.pulses import Pulses
from model.offline.bulk.ray_worker import BulkWorker, Failed, Started
from model.offline.bulk.task import Task
from model.offline.bulk.work import MAX_OPEN_BLOCKS

MAX_DEATHS = 10
"""Deaths of workers in succession, without a block that was finished meanwhile; those that hang at
the same time, as they do where storage stands still, are one."""

_OBJECT_STORE_BYTES = 80 * 2**20  # of a cluster of our own; nothing but receipts crosses it
_KNOCK_SECONDS = 10.0
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}

OWN_CLUSTER = {
    **_QUIET,
    "RAY_worker_niceness": "0",  # 15 otherwise: all that the machine does would go before
    "RAY_enable_metrics_collection": "0",  # nobody could read them, as there is no dashboard
}
"""Environment of a cluster that is begun here; one that is there has its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Cluster that workers run on, and their number.

    Attributes:
        address: Of a cluster that is there; None begins one on this machine for as long as the job.
        num_workers: Of them; None for as many as the cluster has processors for.
        num_local_cores: Processors of a cluster that is begun here.
        hang_seconds: A worker that has had blocks for so long without a step is killed; 0: never.
    """

    address: str | None
    num_workers: int | None
    num_local_cores: int
    hang_seconds: float = 0.0


def run_on_ray(
    task: Task,
    blocks: Iterable[Block],
    cluster: Cluster,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Receipt]:
    """Do blocks; each's receipt once it is written.

    Args:
        task: What all of them have in common.
        blocks: Those that are missing, in order.
        cluster: Where.
        clock: Of seconds.

    Raises:
        BulkError: The cluster cannot be reached or does not have this package, a worker has met
            what ends the job, or workers die or hang again and again.
        ConfigError: There is no Ray here, or more workers are asked for than it has processors for.
    """
    with _connected(cluster) as ray:
        pulses = Pulses(cluster.hang_seconds, clock)
        driver = _Driver(ray, task, Assignment(blocks), pulses)
        driver.begin(_num_workers(ray, task, cluster))
        yield from driver.receipts()


@contextmanager
def _connected(cluster: Cluster) -> Iterator[Any]:
    """Ray, connected."""
    for name, value in (_QUIET if cluster.address else OWN_CLUSTER).items():
        os.environ.setdefault(name, value)  # read when ray is imported
    try:
        import ray  # noqa: PLC0415  # an extra, and large
    except ImportError as error:
        raise ConfigError(
            "--engine ray needs Ray; it comes with the extra: pip install 'dragoman[ray]'"
        ) from error
    where = cluster.address or "on this machine"
    own = {
        "num_cpus": cluster.num_local_cores,
        "include_dashboard": False,
        "object_store_memory": _OBJECT_STORE_BYTES,
    }
    try:
        _knock(cluster.address)
        with _own_sigterm():
            ray.init(
                address=cluster.address or "local",
                log_to_driver=False,
                logging_level="ERROR",
                **({} if cluster.address else own),
            )
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise BulkError(f"no Ray cluster {where}: {reason_of(error)}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """What the block makes of SIGTERM is taken back: Ray's way ends the process with 15."""
    if threading.current_thread() is not threading.main_thread():
        yield  # there it makes nothing of it
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


def _knock(address: str | None) -> None:
    """Check that a cluster listens: Ray ends the process that finds none.

    Raises:
        OSError: None does.
    """
    host, colon, port = (address or "").rpartition(":")
    if colon and port.isdigit() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_SECONDS).close()


def _num_workers(ray: Any, task: Task, cluster: Cluster) -> int:
    """How many workers there will be."""
    num_threads, is_on_gpu = task.method.num_threads, task.method.device == "cuda"
    most = 0
    machines = [one["Resources"] for one in ray.nodes() if one["Alive"]]
    for has in machines:  # none of them takes a part of a worker
        places = int(has.get("CPU", 0)) // num_threads
        most += min(places, int(has.get("GPU", 0))) if is_on_gpu else places
    wanted = most if cluster.num_workers is None else cluster.num_workers
    if not 1 <= wanted <= most:
        each = f"{num_threads} CPU" + (" and 1 GPU" if is_on_gpu else "")
        kinds = ("CPU", "GPU") if is_on_gpu else ("CPU",)
        sums = (f"{sum(has.get(kind, 0) for has in machines):g} {kind}" for kind in kinds)
        raise ConfigError(
            f"{max(1, wanted)} workers of {each} each are asked for; the Ray cluster has"
            f" {' and '.join(sums)} on {len(machines)} machine{'' if len(machines) == 1 else 's'},"
            f" places for {most}"
        )
    return wanted


@dataclass(slots=True, kw_only=True)
class _Worker:
    number: int
    actor: Any
    started: Started | None = None


@dataclass(slots=True)
class _Driver:
    """The driver's state.

    Attributes:
        ray: The module.
        task: What workers are told.
        assignment: Which of them has which block.
        pulses: Which of them get on.
        workers: Those that live, by number.
        calls: What is waited for: of which worker, and which block; None for its start.
        asked: Workers that were asked for their pulse and have not answered.
        num_deaths: Since a block was finished.
    """

    ray: Any
    task: Task
    assignment: Assignment
    pulses: Pulses
    workers: dict[int, _Worker] = field(default_factory=dict)
    calls: dict[Any, tuple[int, Block | None]] = field(default_factory=dict)
    asked: dict[Any, int] = field(default_factory=dict)
    num_begun: int = 0
    num_deaths: int = 0
    task_ref: Any = None

    def begin(self, num_workers: int) -> None:
        """Begin so many workers."""
        job = replace(self.task.job, blocks=())  # they are told theirs one by one
        self.task_ref = self.ray.put(replace(self.task, job=job))
        for _ in range(num_workers):
            self._begin_worker()

    def receipts(self) -> Iterator[Receipt]:
        """Receipts as they come, until every block is finished."""
        while not self.assignment.is_done:
            self._hand_out()
            call = self._first_answer()
            if call is None:
                continue
            number, block = self.calls.pop(call)
            if number not in self.workers:
                continue  # of a worker that is lost already
            try:
                answer: Receipt | Started | Failed = self.ray.get(call)
            except self.ray.exceptions.RayError as error:
                self._lose(number, block, error)
                continue
            if isinstance(answer, Failed):
                raise BulkError(answer.message)
            if isinstance(answer, Started):
                self.workers[number].started = answer
                self.pulses.forget(number)
                continue
            self.assignment.finished(number, answer.block)
            if self.assignment.num_held(number):
                self.pulses.has_work(number)
            else:
                self.pulses.forget(number)
            self.num_deaths = 0
            yield answer

    def _first_answer(self) -> Any:
        """What is answered next; None if nothing was until it is time to look after workers."""
        seconds = self.pulses.seconds_to_look()
        if seconds == 0:
            self._look_after_workers()
            seconds = self.pulses.seconds_to_look()
        answered, _ = self.ray.wait(list(self.calls), num_returns=1, timeout=seconds)
        return answered[0] if answered else None

    def _look_after_workers(self) -> None:
        """Take pulses, and replace whoever hangs."""
        self._take_pulses()
        num_deaths = self.num_deaths
        for number in self.pulses.hung():
            started = self.workers[number].started
            who = "a worker" if started is None else f"worker {started.pid} on {started.host}"
            self.num_deaths = num_deaths
            error = TimeoutError(f"{who} did nothing for {self.pulses.limit_seconds:g} seconds")
            self._lose(number, None, error)

    def _take_pulses(self) -> None:
        """Note what workers have answered; ask all that start or have work and owe no answer.

        The time of one that starts begins with its first answer, as a cluster may have to begin a
        machine for it.
        """
        if self.asked:
            answered, _ = self.ray.wait(list(self.asked), num_returns=len(self.asked), timeout=0)
            for call in answered:
                self._note_pulse(self.asked.pop(call), call)
        starting = {one.number for one in self.workers.values() if one.started is None}
        for number in {*self.pulses.watched, *starting} - {*self.asked.values()}:
            self.asked[self.workers[number].actor.pulse.remote()] = number

    def _note_pulse(self, number: int, call: Any) -> None:
        try:
            num_steps = self.ray.get(call)
        except self.ray.exceptions.RayTaskError as error:
            raise BulkError(
                f"a worker cannot tell what it has done: {cause_of(error)}; the Ray cluster needs"
                " the same version of this package on every machine"
            ) from error
        except self.ray.exceptions.RayError:
            return  # it is gone, and the call that it has says so, too
        worker = self.workers.get(number)
        if worker is not None and worker.started is None and number not in self.pulses.watched:
            self.pulses.has_work(number)
        self.pulses.beat(number, num_steps)

    def _hand_out(self) -> None:
        ready = [one.number for one in self.workers.values() if one.started is not None]
        for number, block in self.assignment.hand_out(
            ready, num_workers=len(self.workers), max_held=MAX_OPEN_BLOCKS
        ):
            if self.assignment.num_held(number) == 1:
                self.pulses.has_work(number)
            self.calls[self.workers[number].actor.do.remote(block)] = (number, block)

    def _begin_worker(self) -> None:
        is_on_gpu = self.task.method.device == "cuda"
        actor = (
            self.ray.remote(BulkWorker)
            .options(
                num_cpus=self.task.method.num_threads,
                num_gpus=1 if is_on_gpu else 0,
                max_concurrency=MAX_OPEN_BLOCKS + 1,
                max_restarts=0,
                max_task_retries=0,
            )
            .remote()
        )
        worker = _Worker(number=self.num_begun, actor=actor)
        self.num_begun += 1
        self.workers[worker.number] = worker
        self.calls[actor.start.remote(self.task_ref)] = (worker.number, None)

    def _lose(self, number: int, block: Block | None, error: Exception) -> None:
        """Give a lost worker's blocks to others, and begin another in its place."""
        if "No module named" in str(error):
            raise BulkError(
                "the Ray cluster does not have this package on every machine:"
                f" {_module_error(error)}; install the same version of it there"
            ) from error
        self.num_deaths += 1
        if self.num_deaths >= MAX_DEATHS:
            at = "" if block is None else f", the last one at block {block.number}"
            raise BulkError(
                f"{self.num_deaths} workers died or hung in succession, and no block was finished"
                f" meanwhile{at}: {cause_of(error)}"
            ) from error
        worker = self.workers.pop(number)
        self.pulses.forget(number)
        self.ray.kill(worker.actor)  # it may be there still, if only an answer of it was lost
        self.assignment.lost(number)
        self._begin_worker()


def cause_of(error: Exception) -> str:
    """What went wrong; of an error in a worker that alone, without how it came to the driver."""
    cause = getattr(error, "cause", None)
    return reason_of(error) if cause is None else f"{type(cause).__name__}: {reason_of(cause)}"


def _module_error(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if "No module named" in line]
    return lines[0][:300]
