"""Activations with one multiplier a matrix, and with a scale a row."""

import json
from pathlib import Path

import pytest
import torch

from benchmarks import multipliers
from benchmarks.multipliers import Multipliers, Products, by_row
from support.tiny_checkpoint import EN_ZH, generated_pairs, write_tiny_checkpoint


def test_a_row_keeps_its_own_scale_and_zeros() -> None:
    rows = torch.tensor([[127.0, 1.4, -0.4], [1.27, 0.014, -0.004], [0.0, 0.0, 0.0]])
    expected = torch.tensor([[127.0, 1.0, 0.0], [1.27, 0.01, 0.0], [0.0, 0.0, 0.0]])
    assert torch.allclose(by_row(rows, rows), expected)


def test_a_multiplier_is_that_of_the_matrix_and_cuts_what_is_beyond() -> None:
    matrix, other = torch.eye(2), torch.eye(2)
    found = Multipliers()
    with Products(found.watch):
        for value in (1.0, 1.54):
            torch.nn.functional.linear(torch.tensor([[value, 0.0]]), matrix)
        torch.nn.functional.linear(torch.tensor([[100.0, 0.0]]), other)
    with Products(found.rounded):
        made = torch.nn.functional.linear(torch.tensor([[0.994, 9.0]]), matrix)
    # 127 / (1.27 + 1.1 × 0.27)
    step = (1.27 + 1.1 * 0.27) / 127
    assert made.tolist() == [[pytest.approx(round(0.994 / step) * step), pytest.approx(127 * step)]]


def test_both_ways_are_told_of_every_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tiny_checkpoint(tmp_path / "tiny", pairs=(EN_ZH,))
    for name, lines in zip(("en", "zh"), zip(*generated_pairs(40), strict=True), strict=True):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = [str(tmp_path / name) for name in ("tiny", "en", "zh")]
    assert multipliers.main([*words, "--lines", "30", "--results", str(tmp_path)]) == 0
    [path] = tmp_path.glob("multipliers-*.json")
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert set(rows) == {"a scale a row", "a multiplier a matrix"}
    for row in rows.values():
        assert row["num_tokens"] > 15
        assert 0 < row["mean"] <= row["largest"] < 5
    assert "a scale a row" in capsys.readouterr().out
