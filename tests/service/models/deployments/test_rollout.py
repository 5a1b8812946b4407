"""Reloads of a front with real engines, by an administrator."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from service.errors import RequestError
from service.front import Front
from service.models.deployments.deployment import Deployment
from service.phase import Phase
from service.settings import Settings
from service.telemetry.metrics import Metrics
from support.damaged_checkpoints import WEIGHTS_FILE, set_scales
from support.served_front import Served
from support.tiny_checkpoint import EN_ZH, ZH_EN, write_tiny_checkpoint


def test_a_reload_answers_with_what_is_served_and_only_one_runs_at_a_time(tmp_path: Path) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))

    async def scenario() -> None:
        served = Served(checkpoint)
        async with served.client() as client:
            before = await served.translate(client)
            write_tiny_checkpoint(checkpoint, name="newer", pairs=(EN_ZH,), seed=6)
            replies = await asyncio.gather(*[client.post("/open/admin/reload") for _ in range(3)])
            assert sorted(reply.status_code for reply in replies) == [200, 409, 409]
            for reply in replies:
                if reply.status_code == 200:
                    assert reply.json() == {"checkpoints": ["newer"], "faulty": []}
                else:
                    assert reply.json()["code"] == "reload_running"
            assert await served.translate(client) != before

    asyncio.run(scenario())


class _Follower:
    """A process that serves what the front does; it notes what it finds when it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, tuple[str, ...], bool]] = []
        self.front: Front | None = None
        self.kept: list[tuple[str, ...]] = []

    def _note(self, what: str, deployment: Deployment) -> None:
        assert self.front is not None
        serving = self.front.deployments
        self.told.append((what, deployment.names, deployment in serving))

    async def began(self, deployment: Deployment) -> None:
        self._note("began", deployment)

    async def prepare(self, deployment: Deployment) -> None:
        self._note("prepare", deployment)

    async def switch(self, deployment: Deployment, kept: Collection[Deployment]) -> None:
        self._note("switch", deployment)
        self.kept = [one.names for one in kept]


@asynccontextmanager
async def _before_a_reload(tmp_path: Path) -> AsyncIterator[tuple[Front, _Follower]]:
    """A front that serves with a follower, and whose checkpoint is another one since."""
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))
    async with _followed(checkpoint) as (front, follower):
        write_tiny_checkpoint(checkpoint, name="newer", pairs=(EN_ZH,), seed=6)
        yield front, follower


@asynccontextmanager
async def _followed(checkpoint: Path) -> AsyncIterator[tuple[Front, _Follower]]:
    """A front that serves with a follower."""
    follower = _Follower()
    settings = Settings(checkpoint=checkpoint, device="cpu", num_threads=1, detection="off")
    follower.front = front = Front(settings, Metrics(CollectorRegistry()), followers=follower)
    async with front.running():
        while front.phase is Phase.BOOTING:  # noqa: ASYNC110  # there is no event
            await asyncio.sleep(0.01)
        yield front, follower


def test_followers_are_prepared_before_and_switched_after_and_old_engines_wait_for_them(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with _before_a_reload(tmp_path) as (front, follower):
            await front.reload()
        assert follower.told == [
            ("began", ("tiny",), True),
            ("prepare", ("newer",), False),
            ("switch", ("newer",), True),
        ]

    asyncio.run(scenario())


class _Reading(_Follower):
    """The same, which never ends reading the next deployment."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: asyncio.Future[Deployment] = asyncio.get_running_loop().create_future()

    async def prepare(self, deployment: Deployment) -> None:
        self.reads.set_result(deployment)
        await asyncio.Event().wait()


@pytest.mark.parametrize("is_drained", [True, False], ids=["by a drain", "by a cancellation"])
def test_a_reload_that_ends_while_followers_read_leaves_no_engine(
    tmp_path: Path, is_drained: bool
) -> None:
    async def scenario() -> None:
        async with _before_a_reload(tmp_path) as (front, follower):
            front._rollout._followers = reading = _Reading()
            reloading = asyncio.create_task(front.reload())
            replica = (await reading.reads).pool.replicas[0]
            assert replica.process_id is not None
            if is_drained:
                async with asyncio.timeout(10):
                    assert await front.drain()
                    with pytest.raises(RequestError) as refused:
                        await reloading
                assert refused.value.problem.code == "draining"
            else:
                reloading.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reloading
            assert replica.process_id is None
            assert [one.names for one in front.deployments] == [("tiny",)]
            assert follower.told == [("began", ("tiny",), True)]

    asyncio.run(scenario())


@pytest.mark.parametrize("is_drained", [False, True], ids=["served", "drained"])
def test_patient_reloads_follow_the_one_that_runs_as_one_unless_the_server_leaves(
    tmp_path: Path, is_drained: bool
) -> None:
    async def scenario() -> None:
        async with _before_a_reload(tmp_path) as (front, follower):
            front._rollout._followers = reading = _Reading()
            running = asyncio.create_task(front.reload())
            await reading.reads
            front._rollout._followers = follower
            write_tiny_checkpoint(tmp_path / "tiny", name="newest", pairs=(EN_ZH,), seed=7)
            patient = [asyncio.create_task(front.reload(is_patient=True)) for _ in range(3)]
            await asyncio.sleep(0)
            if is_drained:
                assert await front.drain()
            else:
                running.cancel()
            ends = await asyncio.gather(*patient, return_exceptions=True)
            codes = [one.problem.code if isinstance(one, RequestError) else one for one in ends]
            assert codes == ["draining" if is_drained else None, None, None]
            served = "tiny" if is_drained else "newest"
            assert [one.names for one in front.deployments] == [(served,)]
            await asyncio.gather(running, return_exceptions=True)
        told = [] if is_drained else ["prepare", "switch"]
        assert [what for what, _, _ in follower.told] == ["began", *told]

    asyncio.run(scenario())


class _Scraping(_Follower):
    """The same, which reads metrics when it is told to switch."""

    def __init__(self, served: Served) -> None:
        super().__init__()
        self.front = served.front
        self._served = served
        self.scraped: list[tuple[float, float]] = []

    def scrape(self) -> tuple[float, float]:
        """Steps so far, and engines that are leaving."""
        num_leaving = self._served.sample("engines", state="leaving")
        return self._served.sample("step_rows_count"), num_leaving

    async def switch(self, deployment: Deployment, kept: Collection[Deployment]) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
            self.scraped.append(self.scrape())
        await super().switch(deployment, kept)


def test_no_counter_goes_back_while_followers_switch_and_what_they_leave_is_leaving(
    tmp_path: Path,
) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))

    async def scenario() -> None:
        served = Served(checkpoint)
        follower = _Scraping(served)
        async with served.client() as client:
            await served.translate(client)
            while not served.sample("step_rows_count"):  # noqa: ASYNC110  # there is no event
                await asyncio.sleep(0.01)
            num_steps, _ = follower.scrape()
            served.front._rollout._followers = follower
            assert (await client.post("/open/admin/reload")).status_code == 200
            await asyncio.gather(*served.front._rollout._retiring.values())
            follower.scraped.append(follower.scrape())
        steps, leaving = zip(*follower.scraped, strict=True)
        assert min(steps) >= num_steps
        assert leaving == (1, 1, 1, 0)

    asyncio.run(scenario())


def test_followers_are_told_what_is_kept_of_earlier_deployments_and_what_is_not(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    write_tiny_checkpoint(folder / "a", name="there", pairs=(EN_ZH,))
    file = write_tiny_checkpoint(folder / "b", name="back", pairs=(ZH_EN,)) / WEIGHTS_FILE
    whole = file.read_bytes()

    async def scenario() -> None:
        async with _followed(folder) as (front, follower):
            file.write_bytes(whole[:-1])
            for _ in range(2):
                await front.reload()
                assert follower.kept == [("there", "back")]
            file.write_bytes(whole)
            await front.reload()
            assert follower.kept == []

    asyncio.run(scenario())


def test_an_engine_without_its_files_waits_for_the_reload_that_runs_and_asks_for_no_other(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with _before_a_reload(tmp_path) as (front, follower):
            _, is_replaced = await asyncio.gather(
                front.reload(), front._rollout._replace_outdated()
            )
        assert is_replaced
        assert [what for what, _, _ in follower.told].count("prepare") == 1

    asyncio.run(scenario())


def _num_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _damages(checkpoint: Path) -> list[Path]:
    """Copies of a checkpoint, each with one file gone, cut or changed."""
    copies = []
    for file in sorted(checkpoint.iterdir()):
        for damage in ("gone", "empty", "cut", "changed"):
            copy = checkpoint.parent / f"{damage}-{file.name}"
            shutil.copytree(checkpoint, copy)
            data = bytearray(file.read_bytes())
            if damage == "gone":
                (copy / file.name).unlink()
                copies.append(copy)
                continue
            if damage == "changed":
                data[len(data) // 2] ^= 1
            size = {"empty": 0, "cut": len(data) // 2 - 1, "changed": len(data)}[damage]
            (copy / file.name).write_bytes(data[:size])
            copies.append(copy)
    return copies


def test_every_damage_is_refused_while_the_old_checkpoint_serves_on(tmp_path: Path) -> None:
    original = write_tiny_checkpoint(tmp_path / "original", pairs=(EN_ZH,))
    link = tmp_path / "served"
    link.symlink_to(original)

    async def scenario() -> None:
        served = Served(link)
        async with served.client() as client:
            before = await served.translate(client)
            num_tasks = len(asyncio.all_tasks())
            num_files = _num_files()
            for damaged in _damages(original):
                link.unlink()
                link.symlink_to(damaged)
                reply = await client.post("/open/admin/reload")
                assert (reply.status_code, reply.json()["code"]) == (409, "reload_failed"), damaged
                assert served.front.phase is Phase.READY
                assert await served.translate(client) == before
            assert len(asyncio.all_tasks()) == num_tasks
            assert _num_files() == num_files

    asyncio.run(scenario())


def test_weights_that_overflow_are_refused_while_the_old_checkpoint_serves_on(
    tmp_path: Path,
) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,), quantise=True)

    async def scenario() -> None:
        served = Served(checkpoint)
        async with served.client() as client:
            before = await served.translate(client)
            for scale in (1e36, 3e38):
                set_scales(checkpoint, scale)
                reply = await client.post("/open/admin/reload")
                assert (reply.status_code, reply.json()["code"]) == (409, "reload_failed")
                assert str(checkpoint / WEIGHTS_FILE) in reply.json()["error"]
                assert (await client.get("/readyz")).status_code == 200
                assert await served.translate(client) == before

    asyncio.run(scenario())
