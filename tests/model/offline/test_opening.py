"""A translator is opened where its caches fit, as large as its own arithmetic makes them."""

from pathlib import Path

import pytest

from model.decode.footprint import EAGER_FLOAT32_TABLES, check_footprint, session_limits
from model.errors import CheckpointError
from model.loading import load_for_decoding
from model.offline import opening
from support.tiny_checkpoint import write_tiny_checkpoint


def test_float32_is_refused_where_its_own_caches_do_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = write_tiny_checkpoint(tmp_path / "tiny")
    checkpoint = load_for_decoding(directory, compute_type="float32")
    limits = session_limits(checkpoint.manifest, max_rows=8, max_slots=8)
    needed = check_footprint(checkpoint.manifest, limits, None, tables=EAGER_FLOAT32_TABLES)
    monkeypatch.setattr(opening, "memory_limit", lambda _: needed)
    assert opening.opened_translator(directory, checkpoint, device="cpu", max_rows=8)
    monkeypatch.setattr(opening, "memory_limit", lambda _: needed - 1)
    with pytest.raises(CheckpointError, match="there are at most"):
        opening.opened_translator(directory, checkpoint, device="cpu", max_rows=8)
