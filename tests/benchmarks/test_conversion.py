"""The measurement of conversions: the network that is written, and what is read of a process."""

import os
from pathlib import Path

import pytest

from benchmarks.conversion import (
    Conversion,
    network_shape,
    own_bytes,
    parse_arguments,
    write_network,
)
from model.exchange.imports.convert import convert
from model.exchange.imports.formats import IMPORTERS


def test_a_network_is_as_large_as_it_should_be_and_can_be_converted(tmp_path: Path) -> None:
    size = write_network(tmp_path / "hub", network_shape(2**19, vocabulary=1000))
    assert size == pytest.approx(2**19, rel=0.2)
    manifest = convert(tmp_path / "hub", tmp_path / "ours", importers=IMPORTERS)
    assert len(manifest.languages) == 202
    assert manifest.network.vocab_size == 1000


def test_large_networks_have_the_table_of_nllb() -> None:
    shape = network_shape(2**30)
    assert (shape["vocab_size"], shape["d_model"]) == (256_206, 1024)
    assert shape["encoder_layers"] == shape["decoder_layers"] == 9
    with pytest.raises(ValueError, match="the table alone has"):
        network_shape(2**28)


def test_memory_of_a_process_is_told_while_it_runs() -> None:
    assert own_bytes(os.getpid()) > 2**20
    assert own_bytes(2**22) == 0  # Linux numbers no process so


def test_sizes_are_told_in_mebibytes() -> None:
    found = Conversion(
        source_bytes=2**30, written_bytes=2**29, own_bytes=2**20, resident_bytes=2**21,
        wall_seconds=3.25,
    )  # fmt: skip
    assert found.row("large").split() == ["large", "1024", "512", "1", "2", "3.2"]


def test_less_than_the_table_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["--gib", "0.5"])
    assert "at least 0.6" in capsys.readouterr().err
