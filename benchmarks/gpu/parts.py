"""A part of the measurements in a process of its own: it starts clean, and may fail.

Owns the process and its time.
"""

import multiprocessing
import traceback
from collections.abc import Callable
from typing import Any


def run_part(name: str, part: Callable[[], object], *, seconds: float) -> object:
    """Run one part in a fresh process; a failure or the end of the time is a result too."""
    print(f"== {name}", flush=True)
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(far, part), daemon=True)
    process.start()
    far.close()
    try:
        if not near.poll(max(0.0, seconds)):
            return {"error": "no time left"}
        return near.recv()
    except EOFError:
        return {"error": f"the process ended with {process.exitcode}"}
    finally:
        process.kill()
        process.join()


def _work(far: Any, part: Callable[[], object]) -> None:  # a Connection of "spawn"
    try:
        far.send(part())
    except Exception as error:  # whatever it is, it goes into the results
        traceback.print_exc()
        far.send({"error": f"{type(error).__name__}: {error}"[:500]})
