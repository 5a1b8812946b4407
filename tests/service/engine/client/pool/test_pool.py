"""A pool of real engines: the same results as one, and no segment lost with one of them."""

import asyncio
import dataclasses
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from model.errors import InputError
from service.engine.client.client import EngineClient, LossReason
from service.engine.client.pool.pool import Pool, Sharing
from service.engine.client.pool.replica import Keeping
from service.engine.client.pool.siblings import Siblings, StartEngine
from service.engine.client.segment_room import SegmentRoom
from service.engine.client.supervisor import RestartBudget
from service.engine.errors import EngineStartError, EngineUnavailableError, QueueFullError
from service.engine.messages import Configure
from support.engine_jobs import job

HANG_SECONDS = 2.0


def starting(
    configure: Configure, *, fails: Callable[[], bool] = lambda: False, at_fault: bool = False
) -> StartEngine:
    async def start(siblings: Siblings) -> EngineClient:
        if fails():
            raise EngineStartError("no", at_fault={0: "replaced"} if at_fault else {})
        return await EngineClient.start(
            configure,
            room=siblings.room,
            hang_seconds=HANG_SECONDS,
            numbers=siblings.numbers,
            on_orphaned=siblings.on_orphaned,
        )

    return start


class Kept:
    """What a pool has said of its engines."""

    def __init__(self, *, max_restarts: int = 3, has_replacement: bool = False) -> None:
        self.losses: list[LossReason] = []
        self.num_moved = 0
        self.num_given_up = 0
        self.num_outdated = 0
        self._max_restarts = max_restarts
        self._has_replacement = has_replacement

    async def outdated(self) -> bool:
        self.num_outdated += 1
        return self._has_replacement

    def given_up(self) -> None:
        self.num_given_up += 1

    def moved(self, number: int) -> None:
        self.num_moved += number

    async def start(
        self,
        starts: Sequence[StartEngine],
        *,
        limit: int = 200,
        fill_rows: int = 0,
        silent_seconds: float = 600.0,
    ) -> Pool:
        return await Pool.start(
            starts,
            room=SegmentRoom(limit),
            keeping=Keeping(
                make_budget=lambda: RestartBudget(
                    max_restarts=self._max_restarts, window_seconds=300.0
                ),
                on_lost=self.losses.append,
                on_outdated=self.outdated,
                clock=asyncio.get_running_loop().time,
            ),
            sharing=Sharing(
                fill_rows=fill_rows, silent_seconds=silent_seconds, on_moved=self.moved
            ),
            on_given_up=self.given_up,
        )


@asynccontextmanager
async def two(
    kept: Kept, configure: Configure, *, limit: int = 200, fill_rows: int = 0
) -> AsyncIterator[Pool]:
    starts = [starting(configure)] * 2
    async with await kept.start(starts, limit=limit, fill_rows=fill_rows) as pool:
        await pool.fill_one_by_one()
        yield pool


async def until(condition: Callable[[], bool]) -> None:
    """pytest's timeout is the bound."""
    while not condition():  # noqa: ASYNC110  # there is no event for it
        await asyncio.sleep(0.005)


def tokens(finished) -> list[tuple[int, ...]]:
    return [one.hypotheses[0].token_ids for one in finished]


def test_two_replicas_translate_as_one_does_and_in_the_order_of_the_jobs(run, engine, configure):
    jobs = [job(number, max_length=4 + number % 7) for number in range(40)]

    async def scenario() -> None:
        with engine.submit(jobs) as batch:
            alone = tokens(await batch.results())
        async with two(Kept(), configure) as pool:
            with pool.submit(jobs) as batch:
                assert [replica.num_pending for replica in pool.replicas] != [40, 0]
                assert pool.num_pending == 40
                assert tokens(await batch.results()) == alone
            assert pool.num_pending == 0
            await until(lambda: pool.counters.num_finished == 40)
            assert all(replica.counters.num_finished > 0 for replica in pool.replicas)
            assert [replica.num_row_steps for replica in pool.replicas] == [0, 0]

    run(scenario())


def test_few_segments_are_all_in_one_replica_and_more_in_both(run, configure):
    async def scenario() -> None:
        async with two(Kept(), configure, fill_rows=4) as pool:
            batches = [pool.submit([job(beam_size=2)]) for _ in range(2)]
            assert [replica.num_pending for replica in pool.replicas] == [2, 0]
            batches.append(pool.submit([job(beam_size=2)]))
            assert [replica.num_pending for replica in pool.replicas] == [2, 1]
            for batch in batches:
                await batch.results()

    run(scenario())


@pytest.mark.parametrize(("number", "reason"), [(signal.SIGKILL, "exit"), (signal.SIGSTOP, "hang")])
def test_what_a_lost_replica_had_another_one_translates(run, configure, number, reason):
    kept = Kept()
    jobs = [job(one, max_length=30) for one in range(30)]

    async def scenario() -> None:
        async with two(kept, configure) as pool:
            with pool.submit(jobs) as batch:
                expected = tokens(await batch.results())
            first, second = (replica.process_id for replica in pool.replicas)
            os.kill(first, signal.SIGSTOP)  # so that it has something when it is lost
            batches = [pool.submit([one]) for one in jobs]
            with pool.submit(jobs) as unwanted:
                pass
            assert unwanted.num_pending == 0
            assert pool.replicas[0].num_pending > 0
            os.kill(first, number)
            found = [tokens(await batch.results())[0] for batch in batches]
            assert found == expected
            assert pool.replicas[1].process_id == second
            await until(lambda: pool.num_ready == 2)
            assert pool.replicas[0].process_id != first
            await until(lambda: pool.num_pending == 0)
            with pool.submit(jobs) as batch:
                assert tokens(await batch.results()) == expected

    run(scenario())
    assert kept.losses == [reason]
    assert kept.num_moved > 0


def test_a_silent_replica_gets_nothing_new_long_before_it_is_lost(run, configure):
    async def scenario() -> None:
        often = msgspec.structs.replace(configure, heartbeat_seconds=0.05)
        async with await Kept().start([starting(often)] * 2, silent_seconds=0.5) as pool:
            await pool.fill_one_by_one()
            os.kill(pool.replicas[0].process_id, signal.SIGSTOP)
            await until(lambda: pool.replicas[0].load(silent_seconds=0.5).is_silent)
            for _ in range(4):
                with pool.submit([job()] * 3) as batch:
                    assert pool.replicas[0].num_pending == 0
                    await batch.results()
            assert pool.replicas[0].is_ready
            os.kill(pool.replicas[0].process_id, signal.SIGCONT)
            await until(lambda: not pool.replicas[0].load(silent_seconds=0.5).is_silent)

    run(scenario())


def test_a_segment_that_two_engines_are_lost_with_fails(run, configure):
    kept = Kept()

    async def scenario() -> None:
        async with two(kept, configure) as pool:
            for replica in pool.replicas:
                os.kill(replica.process_id, signal.SIGSTOP)
            batch = pool.submit([job()])
            os.kill(pool.replicas[0].process_id, signal.SIGKILL)
            await until(lambda: kept.num_moved == 1)
            assert batch.num_pending == 1
            assert pool.replicas[1].num_pending == 1
            os.kill(pool.replicas[1].process_id, signal.SIGKILL)
            with pytest.raises(EngineUnavailableError):
                await batch.results()
            await until(lambda: pool.num_ready == 2)
            assert pool.num_pending == 0
            with pool.submit([job()] * 8) as batch:
                await batch.results()

    run(scenario())
    assert kept.losses == ["exit", "exit"]


def test_a_segment_that_was_moved_is_cancelled_where_it_is(run, configure):
    kept = Kept()

    async def scenario() -> None:
        async with two(kept, configure) as pool:
            for replica in pool.replicas:
                os.kill(replica.process_id, signal.SIGSTOP)
            batch = pool.submit([job(max_length=60)] * 10)
            os.kill(pool.replicas[0].process_id, signal.SIGKILL)
            await until(lambda: kept.num_moved == 5)
            batch.cancel()
            os.kill(pool.replicas[1].process_id, signal.SIGCONT)
            await until(lambda: pool.num_pending == 0)
            assert pool.replicas[1].counters.num_finished == 0

    run(scenario())


def test_the_limit_holds_over_the_sum_and_moving_needs_no_further_room(run, configure):
    kept = Kept()

    async def scenario() -> None:
        async with two(kept, configure, limit=10) as pool:
            with pytest.raises(InputError, match="11 segments; the limit is 10"):
                pool.submit([job()] * 11)
            for replica in pool.replicas:
                os.kill(replica.process_id, signal.SIGSTOP)
            batch = pool.submit([job()] * 10)
            assert [replica.num_pending for replica in pool.replicas] == [5, 5]
            with pytest.raises(QueueFullError) as refusal:
                pool.submit([job()])
            assert (refusal.value.value, refusal.value.limit) == (11, 10)
            with pytest.raises(QueueFullError):
                pool.check_open()
            os.kill(pool.replicas[0].process_id, signal.SIGKILL)
            await until(lambda: kept.num_moved == 5)
            assert pool.num_pending == 10
            os.kill(pool.replicas[1].process_id, signal.SIGCONT)
            assert len(await batch.results()) == 10
            pool.check_open()

    run(scenario())


def test_nothing_is_accepted_by_halves(run, configure):
    async def scenario() -> None:
        async with two(Kept(), configure) as pool:
            with pytest.raises(InputError, match="33 beams"):
                pool.submit([job(), dataclasses.replace(job(beam_size=33))])
            assert pool.num_pending == 0
            with pool.submit([]) as batch:
                assert await batch.results() == []

    run(scenario())


def test_while_the_others_start_the_first_one_serves(run, configure):
    async def scenario() -> None:
        held = asyncio.Event()

        async def start_late(siblings: Siblings) -> EngineClient:
            await held.wait()
            return await starting(configure)(siblings)

        kept = Kept()
        async with await kept.start([starting(configure), start_late, start_late]) as pool:
            pool.fill()
            assert (pool.num_ready, pool.is_ready) == (1, True)
            with pool.submit([job()] * 4) as batch:
                await batch.results()
            held.set()
            await until(lambda: pool.num_ready == 3)

    run(scenario())


def test_a_replica_that_cannot_start_is_given_up_and_the_others_go_on(run, configure):
    kept = Kept(max_restarts=1)

    async def scenario() -> None:
        starts = [starting(configure), starting(configure, fails=lambda: True)]
        async with await kept.start(starts) as pool:
            pool.fill()
            await until(lambda: pool.replicas[1].is_given_up)
            assert (pool.is_ready, pool.is_exhausted) == (True, False)
            with pool.submit([job()]) as batch:
                await batch.results()
            assert kept.num_given_up == 0

    run(scenario())


def test_a_pool_is_exhausted_with_its_last_replica(run, configure):
    kept = Kept(max_restarts=0)

    async def scenario() -> None:
        async with two(kept, configure) as pool:
            os.kill(pool.replicas[0].process_id, signal.SIGKILL)
            await until(lambda: pool.replicas[0].is_given_up)
            assert (pool.is_ready, pool.is_exhausted, kept.num_given_up) == (True, False, 0)
            os.kill(pool.replicas[1].process_id, signal.SIGKILL)
            await until(lambda: pool.is_exhausted)
            assert kept.num_given_up == 1
            with pytest.raises(EngineUnavailableError, match="gone"):
                pool.submit([job()])

    run(scenario())


def test_of_replicas_that_find_other_files_one_has_the_pool_replaced(run, configure):
    kept = Kept(has_replacement=True)
    is_replaced = False

    async def scenario() -> None:
        nonlocal is_replaced
        start = starting(configure, fails=lambda: is_replaced, at_fault=True)
        async with await kept.start([start] * 3) as pool:
            await pool.fill_one_by_one()
            is_replaced = True
            for replica in pool.replicas[1:]:
                os.kill(replica.process_id, signal.SIGKILL)
            await until(lambda: len(kept.losses) == 2)
            await asyncio.wait([replica.supervisor._keeper for replica in pool.replicas[1:]])
            assert kept.num_outdated == 1
            assert not pool.is_exhausted

    run(scenario())


def test_one_by_one_a_start_that_fails_is_an_error_and_ends_with_the_pool(run, configure):
    async def scenario() -> None:
        starts = [starting(configure), starting(configure, fails=lambda: True)]
        pool = await Kept().start(starts)
        with pytest.raises(EngineStartError, match="no"):
            await pool.fill_one_by_one()
        first = pool.replicas[0].process_id
        await pool.close()
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)

    run(scenario())


def test_closing_while_the_others_start_leaves_no_process(run, configure):
    async def scenario() -> None:
        before = _children()
        pool = await Kept().start([starting(configure)] * 3)
        pool.fill()
        await asyncio.sleep(0)
        await pool.close()
        await pool.close()
        assert _children() == before

    run(scenario())


def _children() -> str:
    return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()


def test_watched_segments_of_a_lost_replica_begin_anew_in_another_one(run, configure):
    kept = Kept()
    jobs = [job(number, beam_size=1, max_length=60) for number in range(190)]
    told: dict[int, list[int]] = {}
    restarted: set[int] = set()

    def on_written(place: int, start: int, token_ids: tuple[int, ...]) -> None:
        own = told.setdefault(place, [])
        if start < len(own):
            assert start == 0
            restarted.add(place)
        own[start:] = token_ids

    async def scenario() -> None:
        async with two(kept, configure) as pool:
            with pool.submit(jobs) as batch:
                expected = tokens(await batch.results())
            assert told == {}
            first, second = (replica.process_id for replica in pool.replicas)
            os.kill(second, signal.SIGSTOP)
            with pool.submit(jobs, on_written=on_written) as batch:
                await until(lambda: bool(told))
                os.kill(first, signal.SIGKILL)  # while it has most of its own before it
                os.kill(second, signal.SIGCONT)
                found = tokens(await batch.results())
            assert found == expected
            assert {place: tuple(own) for place, own in told.items()} == dict(enumerate(expected))

    for _ in range(5):  # a machine that is busy may tell of segments only when they are done
        told.clear()
        run(scenario())
        if restarted:
            break
    assert kept.num_moved >= len(restarted) > 0
