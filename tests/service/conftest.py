"""A server on the wire, for the tests of the protocol."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
import uvloop

from service.engine.client import process
from support.quick_engines import QuickEngines
from support.wire import Served, serving_app

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
Scenario = Callable[[Served], Awaitable[None]]


@pytest.fixture(scope="session", autouse=True)
def quick_engines() -> Iterator[QuickEngines]:
    """Fronts of this process start their engines from one that has torch."""
    engines = QuickEngines()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "_start_process", engines.start)
        yield engines
    engines.close()


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Runs a scenario against a server with the given limits, on either event loop."""

    def run_it(scenario: Scenario, **limits: float) -> None:
        async def main() -> None:
            async with asyncio.timeout(60), serving_app(**limits) as served:
                await scenario(served)

        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(main())

    return run_it
