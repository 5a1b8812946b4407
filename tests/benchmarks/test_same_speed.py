"""Two checkouts in turns: what is read of their programs, and what is made of the speeds."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import same_speed
from support.tiny_checkpoint import write_tiny_checkpoint

ROOT = Path(__file__).parents[2]


def test_the_speed_is_read_from_the_line_that_bench_prints() -> None:
    line = "tiny, int8, 2 threads, 8 sentences, beam 4: 1234 tokens/s, 5.0 ms and 33 steps a round"
    assert same_speed.spoken_speed(line) == 1234
    with pytest.raises(ValueError, match=r"without tokens/s"):
        same_speed.spoken_speed("dragoman: something else")


def test_quotients_are_of_rounds_and_not_of_medians() -> None:
    compared = same_speed.Compared(
        name="one", unit="tokens/s", old=(100, 200, 400), new=(110, 190, 480)
    )
    assert compared.quotient == pytest.approx(1.1)


def test_a_checkout_is_compared_with_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny_checkpoint(tmp_path / "tiny")
    short = ("--compute-type", "float32", "--threads", "1", "--sentences", "1", "--max-length", "4")
    monkeypatch.setattr(same_speed, "SETTINGS", {"float32": short})
    flags = ["--checkpoint", tmp_path / "tiny", "--rounds", "1", "--ways", "library"]
    flags += ["--results", tmp_path / "results"]
    monkeypatch.setattr(sys, "argv", ["same_speed", str(ROOT), str(ROOT), *map(str, flags)])
    same_speed.main()
    (path,) = (tmp_path / "results").iterdir()
    compared = json.loads(path.read_text(encoding="utf-8"))["compared"]
    assert [one["name"] for one in compared] == ["float32"]
    assert all(one["old"][0] > 0 and one["new"][0] > 0 for one in compared)
