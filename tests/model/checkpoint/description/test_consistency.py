from collections.abc import Callable
from dataclasses import replace

import pytest

from model.checkpoint.description.config_file import format_manifest, read_manifest
from model.checkpoint.files.checksums import CHECKSUMS_FILE
from model.checkpoint.manifest import CONFIG_FILE, CheckpointFiles, Manifest, TensorEntry
from model.config import LengthLimits
from model.errors import ConfigError
from model.text.languages.tags import LanguagePair
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    directory = tmp_path_factory.mktemp("manifest") / "tiny"
    return read_manifest(write_tiny_checkpoint(directory, quantise=True))


@pytest.mark.parametrize(
    "name",
    ["../w", "a/b", "a\\b", "/etc/passwd", "", ".", "..", ".hidden", "a\0b", "C:w", "a\nb",
     CONFIG_FILE, CHECKSUMS_FILE, "card.md"],
)  # fmt: skip
def test_a_file_name_cannot_leave_the_directory_or_take_anothers_place(
    manifest: Manifest, name: str
) -> None:
    wrong = replace(manifest, files=CheckpointFiles(weights=name))
    with pytest.raises(ConfigError, match=r"must be a plain file name|files uses"):
        format_manifest(wrong)


def change_tokens(**values: object) -> Callable[[Manifest], Manifest]:
    return lambda manifest: replace(manifest, tokens=replace(manifest.tokens, **values))


def change_network(**values: object) -> Callable[[Manifest], Manifest]:
    return lambda manifest: replace(manifest, network=replace(manifest.network, **values))


def change_tensors(name: str, entry: TensorEntry) -> Callable[[Manifest], Manifest]:
    return lambda manifest: replace(manifest, tensors={**manifest.tensors, name: entry})


def change_limits(source: int, target: int) -> Callable[[Manifest], Manifest]:
    limits = LengthLimits(max_source_length=source, max_target_length=target)
    return lambda manifest: replace(manifest, limits=limits)


def change_pairs(*pairs: LanguagePair) -> Callable[[Manifest], Manifest]:
    return lambda manifest: replace(manifest, pairs=pairs)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda m: replace(m, name=" "), "name is empty"),
        (lambda m: replace(m, licence=""), "licence is empty"),
        (change_tokens(eos_id=600), "tokens.eos_id is 600; it must be from 0 to 599"),
        (change_tokens(start_id=-1), "tokens.start_id is -1"),
        (change_tokens(pad_id=3), "tokens.pad_id is 3, network.pad_id is 0"),
        (change_tokens(eos_id=0), "tokens.pad_id and tokens.eos_id are both 0"),
        (change_tokens(suppressed_ids=(5, 600)), "tokens.suppressed_ids has 600"),
        (change_tokens(suppressed_ids=(1,)), "nothing would end"),
        (change_tokens(forced_first_id=700), "tokens.forced_first_id has 700"),
        (change_network(num_encoder_layers=10**9), "num_encoder_layers is 1000000000; at most"),
        (change_network(d_ff=10**12), "network.d_ff is 1000000000000; at most"),
        (change_network(decoder_d_ff=10**18), "network.decoder_d_ff is 1000000000000000000; at"),
        (change_network(position="learned", max_positions=63), "the limits need 64"),
        (change_network(position="learned", max_positions=65, position_offset=2), "need 66"),
        (change_limits(1, 64), "limits.max_source_length is 1; it must be at least 2"),
        (change_limits(10**7, 64), "limits.max_source_length is 10000000; at most 131072"),
        (change_limits(64, 10**12), "limits.max_target_length is 1000000000000; at most"),
        (
            change_network(num_heads=2**20, d_k=1, d_v=1),
            "network.num_heads is 1048576; at most 1024",
        ),
        (change_limits(64, 0), "limits.max_target_length is 0; it must be at least 1"),
        (change_pairs(), "pairs is empty"),
        (change_pairs(EN_ZH, EN_ZH), "pairs has en → zh-Hans 2 times"),
        (change_pairs(replace(EN_ZH, target="zh-hans")), "it must be 'zh-Hans'"),
        (change_pairs(replace(EN_ZH, source="english!")), "not a well-formed language tag"),
        (change_tensors("x", TensorEntry(shape=(3,), dtype="int8")), "int8 goes with 'int8-row'"),
        (
            change_tensors("x", TensorEntry(shape=(3,), dtype="int8", quantisation="int8-row")),
            "tensors.x has 1 dimensions; int8 needs 2",
        ),
        (change_tensors("x", TensorEntry(shape=(0, 3), dtype="float32")), "sizes start at 1"),
        (
            change_tensors("output_bias.scale", TensorEntry(shape=(3,), dtype="float32")),
            "is the name of a scale",
        ),
    ],
)
def test_parts_that_contradict_each_other_are_refused(
    manifest: Manifest, change: Callable[[Manifest], Manifest], problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        format_manifest(change(manifest))
    assert problem in str(caught.value)
