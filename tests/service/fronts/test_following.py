"""What a front serves, by what its owner tells it, over a checkpoint that both read."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from service.front import Front
from service.fronts.following import Following
from service.fronts.link import Link, engines_of
from service.fronts.messages import Deploy, Fault, Place
from service.fronts.stream import Stream
from service.models.checkpoints.discovery import load_checkpoints
from service.settings import Settings
from service.telemetry.metrics import Metrics
from support.tiny_checkpoint import EN_ZH, ZH_EN, write_tiny_checkpoint
from support.warm_engines import loaded_checkpoint, warm_engine


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A checkpoint, as the owner has read it."""
    path = write_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny", pairs=(EN_ZH,))
    return _read(path)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Another one."""
    folder = tmp_path_factory.mktemp("checkpoint")
    return _read(write_tiny_checkpoint(folder / "other", name="other", pairs=(ZH_EN,)))


def _read(path: Path) -> Place:
    [found] = load_checkpoints(path).usable
    return Place(directory=str(path), fingerprint=found.fingerprint)


def _deploy(generation: int, *places: Place, faulty: tuple[Place, ...] = ()) -> Deploy:
    names = (Path(place.directory).name for place in places)
    return Deploy(
        generation=generation,
        usable=places,
        unloaded=(),
        faulty=tuple(Fault(directory=place.directory, reason="is gone") for place in faulty),
        left_out=(),
        ready=warm_engine(*map(loaded_checkpoint, names)),
        max_request_segments=8,
    )


@asynccontextmanager
async def _following(place: Place) -> AsyncIterator[Following]:
    """What follows, of a front that is not started."""
    made: list[Following] = []

    def follow(front: Front) -> Following:
        made.append(Following(front, Link(Stream.__new__(Stream))))  # which says nothing here
        return made[0]

    settings = Settings(checkpoint=Path(place.directory), detection="off", log_level="error")
    front = Front(settings, Metrics(CollectorRegistry()), follow=follow)
    try:
        yield made[0]
    finally:
        for thread in (front.text_thread, front.strangers_thread):
            thread.shutdown()


def _run(place: Place, scenario: Callable[[Following], Awaitable[None]]) -> None:
    async def run() -> None:
        async with _following(place) as following:
            await scenario(following)

    asyncio.run(run())


def _served(following: Following) -> int | None:
    """The number of the deployment that is served."""
    if not following.is_serving:
        return None
    assert following.routes.latest is not None
    return engines_of(following.routes.latest).generation


def test_a_deployment_that_is_told_to_be_served_twice_is_served(place: Place) -> None:
    async def scenario(following: Following) -> None:
        assert await following.prepare(_deploy(1, place))
        for _ in range(2):
            following.serve(1)
            assert _served(following) == 1
        assert (await following.open()) is following.routes.latest

    _run(place, scenario)


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_in_whatever_order_deployments_were_read_the_one_that_is_told_is_served(
    place: Place, order: tuple[int, int]
) -> None:
    async def scenario(following: Following) -> None:
        for generation in order:
            assert await following.prepare(_deploy(generation, place))
        for generation in (1, 2):
            following.serve(generation)
            assert _served(following) == generation

    _run(place, scenario)


def test_what_is_read_after_it_was_told_is_served_when_it_is_told_again(place: Place) -> None:
    async def scenario(following: Following) -> None:
        await following.prepare(_deploy(1, place))
        following.serve(1)
        following.serve(2)
        assert _served(following) is None, "the engines of what was served leave"
        await following.prepare(_deploy(2, place))
        assert _served(following) is None
        following.serve(2)
        assert _served(following) == 2

    _run(place, scenario)


def test_what_another_one_was_served_instead_of_is_not_kept(place: Place) -> None:
    async def scenario(following: Following) -> None:
        for generation in (1, 2):
            await following.prepare(_deploy(generation, place))
        following.serve(2)
        await following.prepare(_deploy(1, place))  # slow to read
        assert not following._prepared
        assert _served(following) == 2

    _run(place, scenario)


def test_other_files_than_the_owner_has_read_are_not_served(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(following: Following) -> None:
        other = Place(directory=place.directory, fingerprint="another")
        assert not await following.prepare(_deploy(1, other))
        following.serve(1)
        assert _served(following) is None
        assert await following.prepare(_deploy(1, place))  # as it is asked again
        following.serve(1)
        assert _served(following) == 1

    _run(place, scenario)
    assert "front_cannot_follow" in caplog.text


def _served_by_name(following: Following) -> dict[str, int | None]:
    """Names that are translated with, and the number of the deployment that has each."""
    names = following.routes.table.names if following.is_serving else ()
    found = {name: following.routes.find(name) for name in names}
    return {
        name: None if one is None else engines_of(one).generation for name, one in found.items()
    }


def test_what_the_owner_keeps_of_an_earlier_deployment_is_served_as_long_as_it_is_kept(
    place: Place, other: Place
) -> None:
    async def scenario(following: Following) -> None:
        await following.prepare(_deploy(1, place, other))
        following.serve(1)
        for generation in (2, 3):
            await following.prepare(_deploy(generation, place, faulty=(other,)))
            following.serve(generation, (1,))
            assert _served_by_name(following) == {"tiny": generation, "other": 1}
        await following.prepare(_deploy(4, place, faulty=(other,)))
        following.serve(4)
        assert _served_by_name(following) == {"tiny": 4}, "the owner has lost its engine"

    _run(place, scenario)


def test_a_front_without_what_the_owner_keeps_serves_nothing_until_nothing_is_kept(
    place: Place, other: Place
) -> None:
    async def scenario(following: Following) -> None:
        for generation in (2, 3):
            await following.prepare(_deploy(generation, place, faulty=(other,)))
            following.serve(generation, (1,))
            assert _served(following) is None, "it began later than the first deployment"
        await following.prepare(_deploy(4, place, other))
        following.serve(4)
        assert _served_by_name(following) == {"tiny": 4, "other": 4}
        await following.prepare(_deploy(6, place, faulty=(other,)))
        following.serve(6, (5,))
        assert _served(following) is None, "it could not read the one before"

    _run(place, scenario)
