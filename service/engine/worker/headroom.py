"""Rows that may run at once: all of them, fewer for a while after memory ran out.

Owns the number and nothing else; reads no clock, times are passed in.
"""

MIN_ROWS = 16
"""So many may always run: the widest beam that a server lets a request ask for."""
RECOVERY_SECONDS = 30.0
"""After so long without another shortage twice as many rows may run."""


class Headroom:
    """Limit of rows: halved when memory runs out, doubled as time passes without that."""

    def __init__(self, *, max_rows: int) -> None:
        self._max_rows = max_rows
        self._rows = max_rows
        self._since = 0.0

    def __repr__(self) -> str:
        return f"<Headroom {self._rows}/{self._max_rows}>"

    def ran_out(self, num_rows: int, *, now: float) -> None:
        """Memory was short while `num_rows` ran or were to run."""
        self._rows = min(self._max_rows, max(num_rows // 2, MIN_ROWS))
        self._since = now

    def rows(self, *, now: float) -> int:
        """Rows that may run at `now`."""
        while self._rows < self._max_rows and now - self._since >= RECOVERY_SECONDS:
            self._rows = min(self._max_rows, 2 * self._rows)
            self._since += RECOVERY_SECONDS
        return self._rows
