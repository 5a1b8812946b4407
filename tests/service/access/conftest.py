from pathlib import Path

import pytest

from support.keyed_client import ADMIN, ALICE, key_line


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    file = tmp_path / "keys.toml"
    lines = (
        key_line("alice", ALICE, requests_per_minute=3),
        key_line("root", ADMIN, is_admin=True),
    )
    file.write_text("\n".join(lines))
    return file
