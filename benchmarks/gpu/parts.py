"""A part of the measurements in a process of its own: it starts clean, and may fail.

Owns the process and its time. What a part has measured before it fails or runs out of time stays.
"""

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any


def run_part(
    name: str,
    part: Callable[[], object],
    *,
    seconds: float,
    on_found: Callable[[object], None] = lambda _: None,
) -> object:
    """Run one part in a fresh process; a failure or the end of the time is a result too.

    Args:
        name: Printed before it begins.
        part: Returns what it found, or an iterator over rows.
        seconds: After which it is ended.
        on_found: Called with the rows so far after each of them.

    Returns:
        What it found. A part of rows that failed has {"error": …} as its last row.
    """
    print(f"== {name}", flush=True)
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(far, part), daemon=True)
    process.start()
    far.close()
    rows: list[object] = []
    deadline = time.monotonic() + seconds
    try:
        while near.poll(max(0.0, deadline - time.monotonic())):
            is_row, found = near.recv()
            if not is_row:
                return _with_rows(rows, found)
            rows.append(found)
            on_found(list(rows))
        return _with_rows(rows, {"error": "no time left"})
    except EOFError:
        process.join()
        return _with_rows(rows, {"error": f"the process ended with {process.exitcode}"})
    finally:
        process.kill()
        process.join()


def _with_rows(rows: list[object], found: object) -> object:
    if not rows:
        return found
    return rows if found is None else [*rows, found]


def _work(far: Any, part: Callable[[], object]) -> None:  # a Connection of "spawn"
    try:
        found = part()
        if isinstance(found, Iterator):
            for row in found:
                far.send((True, row))
            found = None
        far.send((False, found))
    except Exception as error:  # whatever it is, it goes into the results
        traceback.print_exc()
        far.send((False, {"error": f"{type(error).__name__}: {error}"[:500]}))
