"""`dragoman bench` measures what it says, on either arithmetic."""

import re
from pathlib import Path

import pytest

from model.native import kernels
from service.cli.main import main
from support.tiny_checkpoint import write_tiny_checkpoint

COMPUTE_TYPES = ["float32", *([] if kernels.find_problem() else ["int8"])]


@pytest.mark.parametrize("compute_type", COMPUTE_TYPES)
def test_a_profile_accounts_for_all_the_time(
    compute_type: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny")
    flags = "--sentences 3 --beam-size 2 --max-length 9 --rounds 2 --threads 1 --profile"
    status = main(["bench", str(checkpoint), *flags.split(), "--compute-type", compute_type])
    assert status == 0
    first, *lines = capsys.readouterr().out.splitlines()
    chosen = rf"int8 ({'|'.join(kernels.usable())})" if compute_type == "int8" else compute_type
    assert re.match(
        rf"tiny, {chosen}, 1 threads, 3 sentences, beam 2: \d+ tokens/s, [\d.]+ ms", first
    )
    shares = {
        match[1].strip(): float(match[2])
        for line in lines
        if (match := re.match(r"([a-z -]+?)\s+-?[\d.]+\s+(-?[\d.]+)%", line))
    }
    assert set(shares) == {
        "scheduler",
        "encoder",
        "embedding",
        "self attention",
        "cross attention",
        "feed forward",
        "output",
        "search",
        "rest of the step",
    }
    assert sum(shares.values()) == pytest.approx(100.0, abs=1.0)
    assert all(share >= -0.1 for share in shares.values())
    assert lines[-1].startswith("of these, idle: ")


def test_impossible_flags_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = write_tiny_checkpoint(tmp_path / "tiny")
    assert main(["bench", str(checkpoint), "--rounds", "0"]) == 1
    assert "--rounds is 0; it must be from 1 to 100000" in capsys.readouterr().err
    assert main(["bench", str(checkpoint), "--source-length", "65"]) == 1
    assert "--source-length is 65; it must be from 1 to 64" in capsys.readouterr().err
    assert main(["bench", str(checkpoint), "--sentences", "9" * 30]) == 1
    assert "--sentences is a number of more than 20 digits; it must" in capsys.readouterr().err
    assert main(["bench", str(checkpoint), "--sentences", "60000"]) == 1
    assert "--sentences times --beam-size is 240000; it must" in capsys.readouterr().err
