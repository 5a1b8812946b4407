"""The team: every task once, sleepers woken, threads that share a loop at once, time alone."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from model.native import kernels

if TYPE_CHECKING:
    from model.native import _kernels

pytestmark = pytest.mark.skipif(
    kernels.find_problem() is not None, reason=f"no kernels here: {kernels.find_problem()}"
)
_PATIENCE = 30.0


class Clock:
    """Seconds that pass when a test says so; tells how often it was looked at."""

    def __init__(self) -> None:
        self.now = 0.0
        self.num_looks = 0
        self._looked = threading.Condition()

    def __call__(self) -> float:
        with self._looked:
            self.num_looks += 1
            self._looked.notify_all()
        return self.now

    def wait_for_look(self, number: int) -> None:
        with self._looked:
            assert self._looked.wait_for(lambda: self.num_looks >= number, _PATIENCE)


def team_of(num_threads: int, clock: Callable[[], float] | None = None) -> "_kernels.Team":
    made = kernels.load().team
    return made(num_threads) if clock is None else made(num_threads, clock)


def run_together(team: "_kernels.Team", num_tasks: int) -> dict[int, int]:
    """A loop whose tasks all wait for each other: thread of each task, system's name of each."""
    barrier = threading.Barrier(num_tasks)
    names = {}

    def body(_task: int, thread: int) -> None:
        names[thread] = threading.get_native_id()
        barrier.wait(_PATIENCE)

    team.run(num_tasks, body)
    return names


def wait_until_asleep(names: dict[int, int]) -> None:
    """Until the system says that every worker sleeps, not only that it is about to."""
    give_up = monotonic() + _PATIENCE
    workers = [Path(f"/proc/self/task/{names[thread]}/stat") for thread in names if thread != 0]
    while any(path.read_text().rpartition(")")[2].split()[0] != "S" for path in workers):
        assert monotonic() < give_up


@pytest.mark.parametrize("num_threads", [1, 2, 3, 4])
def test_every_task_of_many_loops_in_a_row_is_done_once_and_is_its_own_loops(
    num_threads: int,
) -> None:
    """Each loop has a body of its own, so a task of one that ran another's would be counted."""
    team = team_of(num_threads)
    assert team.num_threads == num_threads
    for number in range(200):
        num_tasks = number % 7
        done: list[tuple[int, int]] = []
        team.run(num_tasks, lambda task, thread, done=done: done.append((task, thread)))
        assert sorted(task for task, _ in done) == list(range(num_tasks))
        assert all(0 <= thread < num_threads for _, thread in done)


@pytest.mark.parametrize("num_threads", [2, 3, 4])
def test_all_threads_share_one_loop_after_another(num_threads: int) -> None:
    team = team_of(num_threads)
    for _ in range(20):
        assert sorted(run_together(team, num_threads)) == list(range(num_threads))


@pytest.mark.parametrize("num_threads", [2, 3, 4])
def test_every_sleeper_is_woken_by_the_next_loop(num_threads: int) -> None:
    team = team_of(num_threads)
    for _ in range(10):
        wait_until_asleep(run_together(team, num_threads))
        assert sorted(run_together(team, num_threads)) == list(range(num_threads))


def test_a_task_that_is_held_up_leaves_the_others_to_the_other_thread() -> None:
    team = team_of(2)
    for _ in range(20):
        is_done = threading.Semaphore(0)

        def body(task: int, _thread: int, is_done: threading.Semaphore = is_done) -> None:
            if task != 0:
                is_done.release()
                return
            for _ in range(9):
                assert is_done.acquire(timeout=_PATIENCE)

        team.run(10, body)


def test_what_a_task_raises_comes_out_when_all_tasks_are_done() -> None:
    team = team_of(2)
    done = []

    def body(task: int, _thread: int) -> None:
        done.append(task)
        if task == 3:
            raise ValueError("task 3")

    with pytest.raises(ValueError, match="task 3"):
        team.run(8, body)
    assert sorted(done) == list(range(8))
    assert sorted(run_together(team, 2)) == [0, 1]


@pytest.mark.parametrize("spin_microseconds", [0, 1, 1000])
def test_however_long_threads_look_for_the_next_loop_every_task_is_done_once(
    spin_microseconds: int,
) -> None:
    team = kernels.load().team(3, spin_microseconds=spin_microseconds)
    for num_tasks in range(200):
        done: list[int] = []
        team.run(num_tasks, lambda task, _thread, done=done: done.append(task))
        assert sorted(done) == list(range(num_tasks))


@pytest.mark.parametrize("is_asleep", [False, True], ids=["spins", "sleeps"])
@pytest.mark.parametrize("num_threads", [1, 2, 4])
def test_a_team_that_is_dropped_ends_its_threads(num_threads: int, is_asleep: bool) -> None:
    team = team_of(num_threads)
    names = run_together(team, num_threads)
    if is_asleep:
        wait_until_asleep(names)
    del team
    give_up = monotonic() + _PATIENCE
    del names[0]
    while any(Path(f"/proc/self/task/{name}").exists() for name in names.values()):
        assert monotonic() < give_up


class Steps:
    """Pieces of work for two threads, of which the caller waits a part that is told."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.team = team_of(2, self.clock)

    def step(self, *, waited: float) -> None:
        """One second, `waited` of which the caller waits for the other thread."""
        self.team.begin()
        self.clock.now += 1.0 - waited
        looks = self.clock.num_looks
        barrier = threading.Barrier(2)

        def body(_task: int, thread: int) -> None:
            barrier.wait(_PATIENCE)
            if thread != 0:
                self.clock.wait_for_look(looks + 1)  # the caller has begun to wait
                self.clock.now += waited

        self.team.run(2, body)
        self.team.end()

    def pause(self, num_steps: int) -> None:
        """So many steps that the caller works on alone, however many tasks they have."""
        before = self.team.num_alone
        for number in range(1, num_steps + 1):
            threads = set()
            self.team.begin()
            self.team.run(5, lambda _task, thread, threads=threads: threads.add(thread))
            self.team.end()
            assert threads == {0}
            assert self.team.num_alone == before + number


def test_waiting_is_counted_by_the_clock_that_was_given() -> None:
    steps = Steps()
    steps.step(waited=0.25)
    steps.step(waited=0.0)
    steps.step(waited=0.125)
    assert steps.team.waited_seconds == 0.375
    assert steps.team.num_alone == 0


def test_a_team_that_works_alone_comes_back_after_as_many_steps_as_it_should() -> None:
    steps = Steps()
    steps.step(waited=0.5)
    steps.step(waited=0.5)
    steps.pause(32)
    steps.step(waited=0.0)  # with both threads: nobody else ends the barrier
    assert steps.team.num_alone == 32


def test_one_slow_step_or_two_apart_or_many_just_below_the_share_are_not_enough() -> None:
    steps = Steps()
    for waited in (0.5, 0.0, 0.5, 0.25, *[0.29] * 5, 0.5, 0.0):
        steps.step(waited=waited)
    assert steps.team.num_alone == 0


def test_each_pause_that_was_in_vain_is_followed_by_one_twice_as_long_up_to_a_limit() -> None:
    steps = Steps()
    steps.step(waited=0.5)
    for length in (32, 64, 128, 256, 512, 1024, 1024):
        steps.step(waited=0.5)  # one is enough after a pause
        steps.pause(length)
    for _ in range(3):  # each halves the next pause
        steps.step(waited=0.0)
    for _ in range(2):
        steps.step(waited=0.3125)
    steps.pause(128)
    for _ in range(10):  # but none is shorter than the first
        steps.step(waited=0.0)
    for _ in range(2):
        steps.step(waited=0.3125)
    steps.pause(32)


def test_a_task_that_raises_in_a_worker_does_not_end_the_process() -> None:
    team = team_of(3)
    barrier = threading.Barrier(3)

    def body(_task: int, thread: int) -> None:
        barrier.wait(_PATIENCE)
        if thread != 0:
            raise RuntimeError

    for _ in range(5):
        with suppress(RuntimeError):
            team.run(3, body)
    assert sorted(run_together(team, 3)) == [0, 1, 2]
