"""Work of a function, counted: the same on every machine, however busy it is."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def num_lines(function: Callable[[], object]) -> int:
    """How many lines of Python a call runs, each time round a loop counted anew."""
    num = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal num
        num += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return num
