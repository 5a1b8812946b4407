from dataclasses import replace
from pathlib import Path

import pytest
from safetensors import safe_open

from model.checkpoint.description.config_file import read_manifest
from model.text.languages.tags import LanguagePair
from service.models.checkpoints.catalogue import MAX_LISTED_PAIRS, entry_of, num_weight_bytes
from support.tiny_checkpoint import EN_ZH, ZH_EN, write_tiny_checkpoint


@pytest.mark.parametrize("quantise", [False, True])
def test_the_bytes_of_the_weights_are_those_in_their_file(tmp_path: Path, quantise: bool) -> None:
    directory = write_tiny_checkpoint(tmp_path / "tiny", quantise=quantise)
    manifest = read_manifest(directory)
    file = directory / manifest.files.weights
    with safe_open(file, framework="pt") as weights:
        tensors = [weights.get_tensor(name) for name in weights.keys()]  # noqa: SIM118  # no mapping
    assert num_weight_bytes(manifest) == sum(one.numel() * one.element_size() for one in tensors)


def test_an_entry_lists_languages_and_few_pairs(tmp_path: Path) -> None:
    manifest = read_manifest(write_tiny_checkpoint(tmp_path / "tiny"))
    entry = entry_of(manifest)
    assert (entry.name, entry.licence) == ("tiny", "Apache-2.0")
    assert (entry.sources, entry.targets) == (("en", "zh-Hans"), ("zh-Hans", "en"))
    assert (entry.num_pairs, entry.pairs) == (2, (EN_ZH, ZH_EN))


def test_of_many_pairs_an_entry_lists_the_languages_alone(tmp_path: Path) -> None:
    manifest = read_manifest(write_tiny_checkpoint(tmp_path / "tiny"))
    pairs = tuple(
        LanguagePair(source="en", target=f"x-{number}") for number in range(MAX_LISTED_PAIRS + 1)
    )
    entry = entry_of(replace(manifest, pairs=pairs))
    assert (entry.num_pairs, entry.pairs) == (MAX_LISTED_PAIRS + 1, None)
    assert len(entry.targets) == MAX_LISTED_PAIRS + 1
