"""Generated text, and a run over it that came to its end."""

from pathlib import Path

import pytest

from support.tiny_runs import run, write_text


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def whole_run(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("runs") / "whole"
    assert run(data_folder, output, draws_curves=True)
    return output
