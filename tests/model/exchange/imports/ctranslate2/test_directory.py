import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from model.errors import ForeignModelError
from model.exchange.imports.ctranslate2.directory import read_settings, read_vocabularies
from model.exchange.imports.ctranslate2.file import VariableFile
from support.ctranslate2_files import model_bytes

NONE = torch.tensor(0, dtype=torch.int8)


def file_of(
    folder: Path, variables: dict[str, Tensor] | None = None, version: int = 6
) -> VariableFile:
    path = folder / "model.bin"
    path.write_bytes(model_bytes(variables or {"nothing": NONE}, version=version))
    return VariableFile(path)


def word(text: str) -> Tensor:
    return torch.tensor(list(text.encode()), dtype=torch.uint8).view(torch.int8)


def test_settings_have_the_engines_defaults(tmp_path: Path) -> None:
    found = read_settings(tmp_path, file_of(tmp_path))
    assert (found.unk, found.bos, found.eos, found.start) == ("<unk>", "<s>", "</s>", "<s>")
    assert (found.has_source_bos, found.has_source_eos, found.layer_norm_epsilon) == (
        False,
        False,
        None,
    )


def test_settings_are_those_of_the_file(tmp_path: Path) -> None:
    config = {
        "unk_token": "[UNK]",
        "bos_token": "[B]",
        "eos_token": "[E]",
        "decoder_start_token": None,
        "add_source_bos": True,
        "add_source_eos": True,
        "layer_norm_epsilon": 1e-6,
        "multi_query_attention": False,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = read_settings(tmp_path, file_of(tmp_path))
    assert (found.unk, found.bos, found.eos, found.start) == ("[UNK]", "[B]", "[E]", None)
    assert found.has_source_bos
    assert found.has_source_eos
    assert found.layer_norm_epsilon == 1e-6


@pytest.mark.parametrize(
    ("flags", "start"),
    [
        ({}, "[B]"),
        ({"with_target_bos": 0}, "[E]"),
        ({"with_target_bos": 1, "user_decoder_start_tokens": 1}, None),
    ],
)
def test_older_files_say_it_in_variables(
    tmp_path: Path, flags: dict[str, int], start: str | None
) -> None:
    variables = {"bos_token": word("[B]"), "eos_token": word("[E]")}
    flags = flags | {"with_source_eos": 1}
    variables |= {name: torch.tensor(value, dtype=torch.int8) for name, value in flags.items()}
    found = read_settings(tmp_path, file_of(tmp_path, variables, version=5))
    assert (found.bos, found.eos, found.start, found.has_source_eos) == ("[B]", "[E]", start, True)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (b"[]", "is not a JSON object"),
        (b"{", "not readable JSON"),
        (b'{"add_source_eos": 1}', "add_source_eos is 1; it must be true or false"),
        (b'{"decoder_start_token": 3}', "decoder_start_token is 3; it must be a string or null"),
        (b'{"layer_norm_epsilon": true}', "layer_norm_epsilon is True"),
        (b'{"quantization_type": 1}', "quantised by AWQ"),
    ],
)
def test_odd_settings_are_named(tmp_path: Path, config: bytes, problem: str) -> None:
    (tmp_path / "config.json").write_bytes(config)
    with pytest.raises(ForeignModelError, match=problem):
        read_settings(tmp_path, file_of(tmp_path))


@pytest.mark.parametrize(
    ("data", "pieces"),
    [
        (b"a\nb\n", ("a", "b")),
        (b"a\r\nb\r\n", ("a", "b")),
        (b"a\r\nb\n", ("a\r", "b")),
        ("é\n\u2028\nb".encode(), ("é", "\u2028", "b")),
        (b"a\n\nb\n", ("a", "", "b")),
    ],
)
def test_lines_of_older_vocabularies_are_pieces(
    tmp_path: Path, data: bytes, pieces: tuple[str, ...]
) -> None:
    (tmp_path / "shared_vocabulary.txt").write_bytes(data)
    found = read_vocabularies(tmp_path)
    assert found.source == found.target == pieces


def test_each_side_may_have_its_own(tmp_path: Path) -> None:
    (tmp_path / "source_vocabulary.json").write_text('["a"]')
    with pytest.raises(ForeignModelError, match=r"target_vocabulary\.json, and shared_voc"):
        read_vocabularies(tmp_path)
    (tmp_path / "target_vocabulary.txt").write_text("b\nc\n")
    found = read_vocabularies(tmp_path)
    assert (found.source, found.target) == (("a",), ("b", "c"))


def test_several_features_a_token_are_refused(tmp_path: Path) -> None:
    for name in ("source_1", "source_2", "target"):
        (tmp_path / f"{name}_vocabulary.json").write_text('["a"]')
    with pytest.raises(ForeignModelError, match="several features a token"):
        read_vocabularies(tmp_path)


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("shared_vocabulary.json", b'{"a": 1}', "is not a JSON list of strings"),
        ("shared_vocabulary.json", b'["a", 1]', "is not a JSON list of strings"),
        ("shared_vocabulary.json", b'["\\ud800"]', "half a character"),
        ("shared_vocabulary.txt", b"a\n\xff\n", "is not UTF-8 at byte 2"),
    ],
)
def test_a_damaged_vocabulary_is_named(
    tmp_path: Path, name: str, data: bytes, problem: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ForeignModelError, match=problem) as caught:
        read_vocabularies(tmp_path)
    assert caught.value.path.name == name
