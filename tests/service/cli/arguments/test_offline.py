import argparse

import pytest

from model.errors import ConfigError
from service.cli.arguments import offline


@pytest.mark.parametrize(("asked", "given"), [(None, 2), (5, 5)])
def test_without_a_flag_there_are_as_many_threads_as_cores_may_be_used(
    monkeypatch: pytest.MonkeyPatch, asked: int | None, given: int
) -> None:
    monkeypatch.setattr(offline, "default_num_threads", lambda: 2)
    assert offline.chosen_threads(argparse.Namespace(threads=asked)) == given


def test_no_threads_are_refused() -> None:
    with pytest.raises(ConfigError, match="--threads is 0"):
        offline.chosen_threads(argparse.Namespace(threads=0))
