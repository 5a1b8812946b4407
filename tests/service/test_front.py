"""The front with a real engine: refusals while it is full, and outside of readiness."""

import asyncio
import os
import signal
import threading
from pathlib import Path

import httpx
import pytest

from service.errors import RequestError
from service.models.routes.routing import Hop, Route
from support.served_front import QUERY, Served
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

ROUTE = Route(hops=(Hop(checkpoint="tiny", pair=EN_ZH),))


def test_a_full_queue_refuses_before_the_text_is_touched(tmp_path: Path) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))

    async def scenario() -> None:
        served = Served(checkpoint, max_pending_segments=1)
        async with served.client() as client:
            engine = served.front._served.pool.replicas[0].process_id
            assert engine is not None
            os.kill(engine, signal.SIGSTOP)
            first = asyncio.create_task(served.translate(client))
            while not served.front._served.pool.num_pending:  # noqa: ASYNC110  # no event
                await asyncio.sleep(0.01)
            is_free = threading.Event()
            served.front.text_thread.submit(is_free.wait)
            refused = await client.post("/translate", json=QUERY)
            is_free.set()
            os.kill(engine, signal.SIGCONT)
            assert (refused.status_code, refused.json()["limit"]) == (429, 1)
            assert int(refused.headers["retry-after"]) >= 1
            assert await first == await served.translate(client)

    asyncio.run(scenario())


def test_as_many_requests_as_the_limit_are_in_work_and_one_that_ends_makes_room(
    tmp_path: Path,
) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))

    async def scenario() -> None:
        served = Served(checkpoint, max_requests=2)
        async with served.client() as client:
            front = served.front
            with front.in_flight.translator(ROUTE, "interactive"):
                front.in_flight.check_room()
                with front.in_flight.translator(ROUTE, "interactive"):
                    for refused in (
                        front.in_flight.check_room,
                        front.in_flight.translator(ROUTE, "interactive").__enter__,
                    ):
                        with pytest.raises(
                            RequestError, match=r"2 requests .* limit is 2"
                        ) as caught:
                            refused()
                        problem = caught.value.problem
                        assert (problem.status, problem.value, problem.limit) == (429, 2, 2)
                    reply = await client.post("/translate", json=QUERY)
                    assert (reply.status_code, reply.json()["limit"]) == (429, 2)
                assert await served.translate(client)
            with (
                front.in_flight.translator(ROUTE, "interactive"),
                front.in_flight.translator(ROUTE, "interactive"),
            ):
                assert (await client.post("/translate", json=QUERY)).status_code == 429
            assert await served.translate(client)

    asyncio.run(scenario())


def test_there_is_nothing_to_reload_before_the_start_and_while_draining(tmp_path: Path) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))

    async def scenario() -> None:
        served = Served(checkpoint)
        transport = httpx.ASGITransport(app=served.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            reply = await client.post("/open/admin/reload")
            assert (reply.status_code, reply.json()["code"]) == (503, "booting")
        async with served.client() as client:
            reloading = asyncio.create_task(client.post("/open/admin/reload"))
            while not served.front._rollout.is_opening:  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(0)
            assert await served.front.drain()
            reply = await reloading
            assert (reply.status_code, reply.json()["code"]) == (503, "draining")
            reply = await client.post("/open/admin/reload")
            assert (reply.status_code, reply.json()["code"]) == (503, "draining")

    asyncio.run(scenario())


def test_a_reload_that_is_refused_leaves_a_change_of_the_folder_due(tmp_path: Path) -> None:
    write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))

    async def scenario() -> None:
        served = Served(tmp_path, watch=True)
        async with served.client() as client:
            watch = served.front._watch
            assert watch is not None
            (tmp_path / "tiny" / "card.md").touch()
            async with served.front._rollout._replacing:
                reply = await client.post("/open/admin/reload")
                assert (reply.status_code, reply.json()["code"]) == (409, "reload_running")
            assert [watch.is_due(), watch.is_due()][-1]
            reply = await client.post("/open/admin/reload")
            assert reply.status_code == 200
            assert not any([watch.is_due(), watch.is_due()])

    asyncio.run(scenario())
