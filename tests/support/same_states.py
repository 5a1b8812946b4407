"""Whether two runs are at the same place, to the bit."""

from pathlib import Path

import torch

from model.train.saved.state import STATE_FILE


def assert_same_state(found: Path, expected: Path) -> None:
    """The saved states of two runs: every tensor bit for bit, everything else equal but times."""
    assert_same(
        *(torch.load(folder / STATE_FILE, weights_only=True) for folder in (found, expected))
    )


def assert_same(found: object, expected: object, where: str = "state") -> None:
    """Every tensor bit for bit, everything else equal; only times differ."""
    if isinstance(expected, dict):
        assert isinstance(found, dict)
        assert found.keys() == expected.keys(), where
        for key, value in expected.items():
            if key != "elapsed_seconds":
                assert_same(found[key], value, f"{where}.{key}")
    elif isinstance(expected, torch.Tensor):
        assert isinstance(found, torch.Tensor)
        assert torch.equal(found, expected), where
    else:
        assert found == expected, where
