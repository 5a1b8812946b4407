"""Checkpoints with a shortlist beside them: written as a copy, verified, refused when damaged."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.description.consistency import manifest_problems
from model.checkpoint.files.checksums import CHECKSUMS_FILE, format_checksums
from model.checkpoint.manifest import CONFIG_FILE, ShortlistEntry
from model.checkpoint.shortlist import CARD_HEAD, add_shortlist, read_shortlist
from model.errors import CheckpointError, ConfigError
from model.loading import load_for_decoding
from support.shortlists import random_shortlist, shortlist_of
from support.tiny_checkpoint import TINY_VOCABULARY_SIZE, write_tiny_checkpoint

SIZE = TINY_VOCABULARY_SIZE
SHORTLIST = random_shortlist(SIZE, SIZE, num_best=4, with_source=True)
FILE = "shortlist.safetensors"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("plain") / "tiny")


@pytest.fixture(scope="module")
def listed(plain: Path) -> Path:
    directory = plain.with_name("listed")
    add_shortlist(plain, directory, SHORTLIST, note="## Lexical shortlist\n\nMade at random.")
    return directory


def copied(directory: Path, to: Path) -> Path:
    to.mkdir()
    for path in directory.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    return to


def signed(directory: Path) -> Path:
    """The same with checksums of what is there now."""
    (directory / CHECKSUMS_FILE).unlink()
    (directory / CHECKSUMS_FILE).write_bytes(format_checksums(directory.iterdir()))
    return directory


def test_a_copy_has_the_table_and_everything_else_as_it_was(plain: Path, listed: Path) -> None:
    manifest = read_manifest(listed)
    found = read_shortlist(listed, manifest)
    for name in ("always", "offsets", "ids"):
        assert (getattr(found, name) == getattr(SHORTLIST, name)).all()
        assert getattr(found, name).dtype == np.int32
    assert found.with_source
    assert replace(manifest, shortlist=None) == read_manifest(plain)
    for path in plain.iterdir():
        if path.name not in {CONFIG_FILE, CHECKSUMS_FILE, "card.md"}:
            assert (listed / path.name).read_bytes() == path.read_bytes()
    card = (listed / "card.md").read_text(encoding="utf-8")
    assert card.startswith("# tiny")
    assert card.endswith("\n\n## Lexical shortlist\n\nMade at random.\n")


def test_a_checkpoint_without_one_is_of_the_schema_that_it_always_had(
    plain: Path, listed: Path
) -> None:
    texts = [(each / CONFIG_FILE).read_text(encoding="utf-8") for each in (plain, listed)]
    assert [json.loads(text)["schema_version"] for text in texts] == [1, 2]
    assert "shortlist" not in texts[0]
    assert json.loads(texts[1])["shortlist"] == {
        "num_always": 2,
        "num_ids": len(SHORTLIST.ids),
        "with_source": True,
    }


def test_a_second_one_takes_the_place_of_the_first(listed: Path, tmp_path: Path) -> None:
    other = shortlist_of([[7]] * SIZE)
    manifest = add_shortlist(listed, tmp_path / "again", other, note="Again.")
    assert read_shortlist(tmp_path / "again", read_manifest(tmp_path / "again")).ids[0] == 7
    assert manifest.shortlist == ShortlistEntry(num_always=0, num_ids=SIZE, with_source=False)


def test_a_card_tells_of_the_last_one_alone(listed: Path, tmp_path: Path) -> None:
    own = copied(listed, tmp_path / "own")
    with (own / "card.md").open("a", encoding="utf-8") as card:
        card.write("\n## Of mine\n\nSomething.\n")
    signed(own)
    add_shortlist(own, tmp_path / "again", SHORTLIST, note=f"{CARD_HEAD}\n\nAgain.")
    add_shortlist(tmp_path / "again", tmp_path / "third", SHORTLIST, note=f"{CARD_HEAD}\n\nThird.")
    text = (tmp_path / "third" / "card.md").read_text(encoding="utf-8")
    assert text.startswith("# tiny")
    assert text.endswith("\n\n## Of mine\n\nSomething.\n\n## Lexical shortlist\n\nThird.\n")
    assert text.count("shortlist") == 1
    assert "Made at random." not in text


def test_a_shortlist_that_came_along_is_told_of_no_more_when_another_takes_its_place(
    listed: Path, tmp_path: Path
) -> None:
    own = copied(listed, tmp_path / "own")
    notes = "- Its authors decode alone.\n- Its lexical shortlist (lex.bin) came along.\n"
    (own / "card.md").write_text(f"# tiny\n\n## What differs\n\n{notes}", encoding="utf-8")
    signed(own)
    add_shortlist(own, tmp_path / "again", SHORTLIST, note=f"{CARD_HEAD}\n\nAgain.")
    text = (tmp_path / "again" / "card.md").read_text(encoding="utf-8")
    assert "- Its authors decode alone.\n" in text
    assert "came along" not in text


def test_it_is_loaded_where_it_is_asked_for_and_only_there(plain: Path, listed: Path) -> None:
    found = load_for_decoding(listed, with_shortlist=True).shortlist
    assert found is not None
    assert len(found.ids) == len(SHORTLIST.ids)
    assert load_for_decoding(listed).shortlist is None
    with pytest.raises(CheckpointError, match="tiny: has no lexical shortlist"):
        load_for_decoding(plain, with_shortlist=True)


def test_a_place_that_is_taken_and_a_table_of_another_vocabulary_are_refused(
    plain: Path, listed: Path, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match="listed: exists"):
        add_shortlist(plain, listed, SHORTLIST, note="")
    with pytest.raises(ConfigError, match=r"does not fit tiny: .*601 are needed"):
        add_shortlist(plain, tmp_path / "new", shortlist_of([[1]] * 9), note="")
    assert not list(tmp_path.iterdir())


def replaced(**tensors: np.ndarray) -> Callable[[Path], None]:
    """A change of the file: other tensors, or none where one is empty."""
    whole = {name: getattr(SHORTLIST, name) for name in ("always", "offsets", "ids")} | tensors
    return lambda directory: (directory / FILE).write_bytes(save(whole)) and None


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no file": (lambda directory: (directory / FILE).unlink(), "has no line in the checksums"),
    "a cut file": (
        lambda directory: (directory / FILE).write_bytes((directory / FILE).read_bytes()[:400]),
        "it has 400 bytes; it can have",
    ),
    "another format": (
        lambda directory: (directory / FILE).write_bytes(
            b"\xff" * (directory / FILE).stat().st_size
        ),
        "is not a readable safetensors file",
    ),
    "floats": (
        replaced(always=np.zeros(2, dtype=np.float32)),
        "always': 'float32",
    ),
    "an id that is none": (
        replaced(always=np.array([2, SIZE], dtype=np.int32)),
        f"always has {SIZE}; it must be from 0 to {SIZE - 1}",
    ),
    "offsets that fall": (
        replaced(offsets=np.concatenate([[0, 9, 3], SHORTLIST.offsets[3:]]).astype(np.int32)),
        "offsets falls somewhere",
    ),
}


@pytest.mark.parametrize(("damage", "problem"), DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_is_named_with_what_is_wrong(
    listed: Path, tmp_path: Path, damage: Callable[[Path], object], problem: str
) -> None:
    directory = copied(listed, tmp_path / "damaged")
    damage(directory)
    signed(directory)
    with pytest.raises(CheckpointError, match=r"shortlist\.safetensors") as refusal:
        read_shortlist(directory, read_manifest(directory))
    assert problem in refusal.value.problem


def test_a_description_that_cannot_be_is_refused(plain: Path) -> None:
    manifest = read_manifest(plain)
    entries = {
        "num_always is 601; it must be from 0 to 600": {"num_always": SIZE + 1},
        "num_ids is -1; it must be from 0 to": {"num_ids": -1},
        "num_ids is 67108865; it must be from 0 to 67108864": {"num_ids": 2**26 + 1},
        "shortlist.file is '../x'; it must be a plain file name": {"file": "../x"},
        "files uses 'card.md' for card and shortlist": {"file": "card.md"},
    }
    for problem, change in entries.items():
        entry = ShortlistEntry(**({"num_always": 2, "num_ids": 5, "with_source": False} | change))
        [found] = manifest_problems(replace(manifest, shortlist=entry))
        assert problem in found
