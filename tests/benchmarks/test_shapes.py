"""Quality against speed: every checkpoint has its turn, and the table has the medians."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import shapes
from model.loading import Runnable, load_for_decoding
from model.native.network import Int8Network
from support.tiny_checkpoint import EN_ZH, generated_pairs, write_tiny_checkpoint


def test_every_checkpoint_is_scored_and_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = list(generated_pairs(4))
    for name, side in (("a.en", 0), ("a.zh", 1)):
        lines = "".join(f"{pair[side]}\n" for pair in pairs)
        (tmp_path / name).write_text(lines, encoding="utf-8")
    words = [str(tmp_path / "a.en"), str(tmp_path / "a.zh")]
    for name in ("one", "two"):
        words += [str(write_tiny_checkpoint(tmp_path / name, name=name, pairs=(EN_ZH,)))]
    words += ["--rounds", "3", "--threads", "2", "--results", str(tmp_path / "results")]
    monkeypatch.setattr(sys, "argv", ["shapes", *words])
    loaded: list[Runnable] = []

    def load(directory: Path, **options: Any) -> Runnable:
        loaded.append(load_for_decoding(directory, **options))
        return loaded[-1]

    monkeypatch.setattr(shapes, "load_for_decoding", load)
    before = torch.get_num_threads()

    try:
        shapes.main()
        assert [_num_threads(runnable) for runnable in loaded] == [2, 2]
    finally:
        torch.set_num_threads(before)

    (file,) = (tmp_path / "results").iterdir()
    result = json.loads(file.read_text(encoding="utf-8"))
    files = [f"{tmp_path.name}/{name}" for name in ("a.en", "a.zh", "one", "two")]
    assert result["command"] == (
        f"python -m benchmarks.shapes {' '.join(files)} --rounds 3 --threads 2"
        f" --results {tmp_path.name}/results"
    )
    assert {shape["compute_type"] for shape in result["shapes"]} <= {"int8", "float32"}
    assert [shape["name"] for shape in result["shapes"]] == ["one", "two"]
    for shape in result["shapes"]:
        assert len(shape["sentences_per_second"]) == len(shape["milliseconds_per_sentence"]) == 3
        assert min(shape["sentences_per_second"] + shape["milliseconds_per_sentence"]) > 0
        assert "tok:zh" in shape["bleu_signature"]
    printed = capsys.readouterr().out
    assert "\n| one | 2 + 2, 32 | 0.1 M | " in printed


def _num_threads(runnable: Runnable) -> int:
    """Threads of its network."""
    network = runnable.network
    return network.team.num_threads if isinstance(network, Int8Network) else torch.get_num_threads()


def test_the_table_has_medians() -> None:
    shape = shapes.Shape(
        name="a",
        num_encoder_layers=6,
        num_decoder_layers=1,
        d_model=128,
        num_parameters=2_605_056,
        compute_type="int8",
        bleu=41.04,
        sentences_per_second=[90.0, 100.0, 5.0],
        milliseconds_per_sentence=[9.0, 8.04, 7.0],
    )
    assert shapes.table([shape]).endswith("| a | 6 + 1, 128 | 2.6 M | 41.0 | 90 | 8.0 |")
