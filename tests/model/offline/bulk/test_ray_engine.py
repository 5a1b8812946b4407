"""Words of the driver; what it does is tested on a real cluster (tests/service/cli/translate)."""

from model.offline.bulk.ray_engine import cause_of


class _TaskError(Exception):
    """As Ray raises it: its text is a traceback, and the error is beside it."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause
        super().__init__("ray::Worker.do() (pid=1) File worker.py, line 69, in do")


def test_of_an_error_in_a_worker_that_error_is_told() -> None:
    error = _TaskError(LookupError("the store broke the connection off"))
    assert cause_of(error) == "LookupError: the store broke the connection off"
    assert cause_of(TimeoutError("worker 1 did nothing")) == "worker 1 did nothing"
