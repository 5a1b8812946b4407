"""Two replicas behind one front, in this process, with real engines."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from model.system.cores import usable_cores
from service.engine.client.pool.replica import Replica
from service.engine.errors import EngineStartError
from support.served_front import QUERY, Served

pytestmark = pytest.mark.skipif(usable_cores() < 2, reason="there is one processor")


async def _all_ready(served: Served) -> None:
    """pytest's timeout is the bound."""
    while served.front.replicas != (2, 2):  # noqa: ASYNC110  # there is no event for it
        await asyncio.sleep(0.005)


def test_a_request_that_a_replica_is_killed_with_is_answered(served_checkpoint: Path) -> None:
    async def scenario() -> None:
        served = Served(served_checkpoint, replicas=2)
        async with served.client() as client:
            first = await served.translate(client)
            await _all_ready(served)
            replica = served.front._served.pool.replicas[0]
            assert replica.process_id is not None
            os.kill(replica.process_id, signal.SIGSTOP)
            asked = [asyncio.create_task(served.translate(client)) for _ in range(8)]
            while not replica.num_pending:  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(0)
            os.kill(replica.process_id, signal.SIGKILL)
            assert set(await asyncio.gather(*asked)) == {first}
            assert served.sample("moved_segments_total") > 0
            assert served.sample("engine_up") == 1
            await _all_ready(served)
            assert served.sample("engine_restarts_total", reason="exit") == 1

    asyncio.run(scenario())


def test_a_reload_of_which_a_replica_fails_leaves_the_old_ones(
    served_checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Replica.start

    async def scenario() -> None:
        served = Served(served_checkpoint, replicas=2)
        async with served.client() as client:
            await _all_ready(served)
            before = [replica.process_id for replica in served.front._served.pool.replicas]

            async def start_the_first(replica: Replica) -> None:
                if replica.place > 0:
                    raise EngineStartError("no memory")
                await start(replica)

            monkeypatch.setattr(Replica, "start", start_the_first)
            refused = await client.post("/open/admin/reload")
            assert (refused.status_code, refused.json()["code"]) == (409, "reload_failed")
            monkeypatch.undo()
            now = [replica.process_id for replica in served.front._served.pool.replicas]
            assert now == before
            assert (await client.post("/translate", json=QUERY)).status_code == 200
            assert (await client.post("/open/admin/reload")).status_code == 200
            assert served.front.replicas == (2, 2)
            after = {replica.process_id for replica in served.front._served.pool.replicas}
            assert not after & set(before)

    asyncio.run(scenario())
