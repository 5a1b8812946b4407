"""Watch over servers that send so little that nobody would wait for the end."""

from collections.abc import Callable

from model.errors import UnreachableError

_WINDOW_SECONDS = 60.0
_LEAST_WINDOW_BYTES = 60 * 1024


class PaceWatch:
    """Watch over one body while it comes.

    Args:
        url: Of what comes.
        clock: Seconds, monotonic.
    """

    def __init__(self, url: str, clock: Callable[[], float]) -> None:
        self._url, self._clock = url, clock
        self._began, self._num_bytes = clock(), 0

    def received(self, num_bytes: int) -> None:
        """Take note of bytes.

        Raises:
            UnreachableError: Too few came within the last window.
        """
        self._num_bytes += num_bytes
        elapsed = self._clock() - self._began
        if elapsed < _WINDOW_SECONDS:
            return
        if self._num_bytes < _LEAST_WINDOW_BYTES:
            problem = f"sent {self._num_bytes} bytes in {elapsed:.0f} seconds"
            raise UnreachableError(self._url, problem)
        self._began, self._num_bytes = self._clock(), 0
