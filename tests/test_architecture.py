"""ARCHITECTURE.md against the sources: every file has its words, and every path is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
QUOTED = re.findall(r"`([^`\n]+)`", PAGE)
FILES = sorted({quoted for quoted in QUOTED if re.fullmatch(r"[a-z_0-9/]+\.(py|h|cpp)", quoted)})
FOLDERS = [ROOT, ROOT / "model", ROOT / "model/decode", ROOT / "service", ROOT / "service/engine"]


def test_every_source_file_has_its_words() -> None:
    named = {quoted.rstrip("/").rpartition("/")[2].removesuffix(".py") for quoted in QUOTED}
    sources = [path for room in ("model", "service") for path in (ROOT / room).rglob("*.py")]
    assert len(sources) > 200
    assert sorted(path for path in sources if path.stem not in {*named, "__init__"}) == []


@pytest.mark.parametrize("name", FILES)
def test_every_file_that_is_named_with_its_folder_is_there(name: str) -> None:
    if "/" in name:
        assert any((folder / name).is_file() for folder in FOLDERS)


def test_decisions_are_numbered_one_by_one() -> None:
    decisions = PAGE.partition("## Decisions")[2].partition("## Dependencies")[0]
    numbers = [int(number) for number in re.findall(r"^(\d+)\. \*\*", decisions, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
