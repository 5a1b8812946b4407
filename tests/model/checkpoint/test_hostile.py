"""Checkpoints that somebody made to do harm: every one is an error of one bounded line."""

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.files import verification
from model.checkpoint.manifest import CONFIG_FILE
from model.checkpoint.tokenizer import load_tokenizer
from model.errors import MAX_MESSAGE_CHARACTERS, CheckpointError
from model.text.subwords.pieces import PieceModel
from support.damaged_checkpoints import WEIGHTS_FILE, change_config, list_anew
from support.tiny_checkpoint import write_tiny_checkpoint

Json = dict[str, Any]

VALUES: list[object] = [
    None,
    True,
    [],
    {},
    "",
    "\x1b[2J\n\u2028\u202e",
    "x" * 1_000_000,
    ["y" * 1_000] * 1_000,
    {"\n" * 1_000: 1},
    {str(number): {} for number in range(10_000)},
    -1,
    2**31,
    2**63,
    10**900,
    1e308,
    -0.0,
]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("good") / "tiny", quantise=True)


@pytest.fixture
def directory(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "tiny"))


def refusal(directory: Path) -> CheckpointError:
    """What reading it says, after a look at how it says it."""
    with pytest.raises(CheckpointError) as caught:
        load_tokenizer(directory, read_manifest(directory))
    check_message(caught.value)
    return caught.value


def check_message(error: CheckpointError) -> None:
    assert str(error).isprintable()
    assert len(str(error)) < MAX_MESSAGE_CHARACTERS + 300


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place of a JSON value but those of one tensor after the other."""
    found = [path] if path else []
    items: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        items = list(value.items())[:20]
    elif isinstance(value, list):
        items = list(enumerate(value))[:1]
    for key, item in items:
        found += places(item, (*path, key))
    return found


def test_any_value_at_any_place_of_the_config_is_fine_or_one_line(directory: Path) -> None:
    config = json.loads((directory / CONFIG_FILE).read_bytes())
    chance = random.Random(7)
    refusals = []
    for path in places(config):
        for value in chance.sample(VALUES, 5):
            changed = json.loads(json.dumps(config))
            inner = changed
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
            (directory / CONFIG_FILE).write_text(json.dumps(changed), encoding="utf-8")
            try:
                read_manifest(directory, verify=False)
            except CheckpointError as error:
                refusals.append(error)
    assert len(refusals) > 300
    for refused in refusals:
        assert refused.path == directory / CONFIG_FILE
        check_message(refused)


def _repeated(name: str, count: int) -> Callable[[Json], object]:
    def change(config: Json) -> None:
        config[name] = config[name][:1] * count

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["pairs"][0].update(target_prefix=["a"] * 257), "257 entries; at most 256"),
        (lambda c: c["pairs"][0].update(source_prefix=["a"] * 100_000), "at most 256 are read"),
        (lambda c: c["tokens"].update(suppressed_ids=[0] * 601), "601 entries; at most 600"),
        (_repeated("licences", 5_000), "licences has 5000 entries; at most 4096"),
        (_repeated("pairs", 70_000), "pairs has 70000 entries; at most 65536"),
        (lambda c: c["tensors"]["output_bias"].update(shape=[1] * 9), "9 entries; at most 8"),
        (lambda c: c["limits"].update(max_target_length=2**17 + 1), "at most 131072 is read"),
        (lambda c: c.update(name="a\x1b[2Jb"), r"name is 'a\\x1b[2Jb'; it must have no control"),
        (lambda c: c.update(name="a\u202eb"), r"name is 'a\\u202eb'; it must"),
        (lambda c: c.update(name="a" * 1_001), "name has 1001 characters; at most 1000"),
        (lambda c: c["licences"][0].update(corpus="a\nb"), r"licences[0].corpus is 'a\\nb'"),
        (lambda c: c["pairs"][0].update(source="en\n"), "pairs[0].source"),
        (lambda c: c["tensors"].update({"a" * 9_000_000: 1}), "'aaaa"),
    ],
)
def test_what_is_too_much_or_odd_is_named_with_its_limit(
    directory: Path, change: Callable[[Json], object], message: str
) -> None:
    change_config(directory, change)
    error = refusal(directory)
    assert error.path == directory / CONFIG_FILE
    assert message.replace("\\\\", "\\") in str(error)


def test_a_config_that_is_too_large_is_not_parsed(directory: Path) -> None:
    os.truncate(directory / CONFIG_FILE, 2**40)
    assert "it has 1099511627776 bytes; it can have 0 to 16777216" in str(refusal(directory))


@pytest.mark.parametrize(
    "name", [WEIGHTS_FILE, "source.spm", "vocabulary.json", "card.md", "checksums.sha256"]
)
def test_a_sparse_file_is_refused_by_its_size(directory: Path, name: str) -> None:
    """Hashing a tebibyte would take longer than any test may."""
    os.truncate(directory / name, 2**40)
    assert refusal(directory).path == directory / name


def test_a_sparse_file_that_is_listed_for_nothing_is_refused_by_its_size(directory: Path) -> None:
    (directory / "notes").touch()
    list_anew(directory)
    os.truncate(directory / "notes", 2**40)
    assert refusal(directory).path == directory / "notes"


def test_weights_that_no_memory_holds_are_not_hashed(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "host_limit", lambda: 50_000)
    error = refusal(directory)
    assert error.path == directory / CONFIG_FILE
    assert "there are at most 0.0 MiB" in str(error)


@pytest.mark.parametrize(
    "error", [ValueError, OSError, TypeError, IndexError, UnicodeError, SystemError, MemoryError]
)
@pytest.mark.parametrize("name", ["encode", "id_to_piece", "get_piece_size", "decode"])
def test_whatever_sentencepiece_raises_is_an_error_of_its_file(
    directory: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception], name: str
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise error("line\nline" * 1_000_000)

    monkeypatch.setattr(f"sentencepiece.SentencePieceProcessor.{name}", fail)
    caught = refusal(directory)
    assert caught.path == directory / "source.spm"
    assert error.__name__ in str(caught)


def test_pieces_that_are_no_text_are_found_before_a_text_happens_upon_them(
    directory: Path,
) -> None:
    """A file of SentencePiece's own making, with one byte of one piece changed."""
    path = directory / "source.spm"
    data = path.read_bytes()
    assert "▁station".encode() in data
    path.write_bytes(data.replace("▁station".encode(), "▁sta".encode() + b"\xff" + b"ion"))
    list_anew(directory)
    assert refusal(directory).path == path


def test_any_damage_to_a_sentencepiece_file_is_fine_or_one_line(directory: Path) -> None:
    path = directory / "source.spm"
    good, chance = path.read_bytes(), random.Random(3)
    described = read_manifest(directory)
    num_refused = 0
    for _ in range(300):
        data = bytearray(good)
        for _ in range(chance.choice([1, 2, 30])):
            position = chance.randrange(len(data))
            data[position : position + chance.randrange(2)] = chance.randbytes(chance.randrange(3))
        path.write_bytes(data)
        try:
            tokenizer = load_tokenizer(directory, described)
        except CheckpointError:
            num_refused += 1
        else:
            tokenizer.decode(tokenizer.encode("The cat sees 猫 \U0010fffd", described.pairs[0]))
    assert num_refused > 100
    assert len(PieceModel(good)) == 600
