import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from model.checkpoint.checksums import CHECKSUMS_FILE, format_checksums
from model.checkpoint.config_file import format_manifest, read_manifest
from model.checkpoint.manifest import CONFIG_FILE, CheckpointFiles, Licence, Manifest, TensorEntry
from model.config import LengthLimits, ModelConfig, SpecialTokens
from model.errors import CheckpointError, ConfigError
from model.text.language import LanguagePair
from support.tiny_checkpoint import EN_ZH, TINY_TOKENS, ZH_EN, write_tiny_checkpoint

Json = dict[str, Any]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("manifest") / "tiny", quantise=True)


@pytest.fixture(scope="module")
def manifest(good: Path) -> Manifest:
    return read_manifest(good)


def edited(good: Path, directory: Path, edit: Callable[[Json], object]) -> Path:
    """A checkpoint directory that holds only an edited config.json."""
    value = json.loads((good / CONFIG_FILE).read_bytes())
    edit(value)
    (directory / CONFIG_FILE).write_text(json.dumps(value), encoding="utf-8")
    return directory


def problem_of(directory: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        read_manifest(directory, verify=False)
    assert caught.value.path == directory / CONFIG_FILE
    return caught.value.problem


def test_a_manifest_says_what_was_saved(manifest: Manifest) -> None:
    assert manifest.schema_version == 1
    assert manifest.tokens == TINY_TOKENS
    assert manifest.pairs == (EN_ZH, ZH_EN)
    assert manifest.pair("zh-Hans", "en") == ZH_EN
    assert manifest.pair("en", "fr") is None
    assert manifest.tensors["source_embedding.weight"] == TensorEntry(
        shape=(600, 32), dtype="int8", quantisation="int8-row"
    )
    assert manifest.tensors["output_bias"] == TensorEntry(shape=(600,), dtype="float32")


def test_the_version_is_the_first_thing_in_the_file(good: Path) -> None:
    assert next(iter(json.loads((good / CONFIG_FILE).read_bytes()))) == "schema_version"


@pytest.mark.parametrize("place", ["", "network"])
def test_an_unknown_key_alone_is_refused_too(good: Path, tmp_path: Path, place: str) -> None:
    def edit(value: Json) -> None:
        (value[place] if place else value)["colour"] = 1

    assert "colour is unknown" in problem_of(edited(good, tmp_path, edit))


def test_all_missing_unknown_and_mistyped_keys_are_listed_at_once(
    good: Path, tmp_path: Path
) -> None:
    def edit(value: Json) -> None:
        del value["name"]
        value["extra"] = 1
        value["network"].pop("dropout")
        value["network"]["colour"] = "red"
        value["tokens"]["eos_id"] = "1"
        value["pairs"][0]["source"] = None
        value["tensors"]["output_bias"]["dtype"] = "float64"

    problem = problem_of(edited(good, tmp_path, edit))
    for part in (
        "name is missing",
        "extra is unknown",
        "network.dropout is missing",
        "network.colour is unknown",
        "tokens.eos_id is '1'; it must be an integer",
        "pairs[0].source is None; it must be a string",
        "tensors.output_bias.dtype is 'float64'; it must be 'float32' or 'float16' or",
    ):
        assert part in problem


@pytest.mark.parametrize("version", [0, 2, 10**30])
def test_another_version_is_refused_for_that_alone(
    good: Path, tmp_path: Path, version: int
) -> None:
    def edit(value: Json) -> None:
        value["schema_version"] = version
        value["new_key"] = value.pop("pairs")

    problem = problem_of(edited(good, tmp_path, edit))
    assert problem == f"schema_version is {version}; this Dragoman reads 1"


@pytest.mark.parametrize("version", [True, "1", 1.0, None])
def test_a_version_that_is_not_an_integer_is_refused(
    good: Path, tmp_path: Path, version: object
) -> None:
    problem = problem_of(edited(good, tmp_path, lambda value: value.update(schema_version=version)))
    assert "schema_version is" in problem


def test_an_impossible_network_is_refused_with_the_reason_of_its_config(
    good: Path, tmp_path: Path
) -> None:
    directory = edited(good, tmp_path, lambda value: value["network"].update(num_heads=5))
    assert "network: d_model is 32; it must be a multiple of num_heads (5)" in problem_of(directory)


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


def test_contradictions_in_a_file_are_listed_together(good: Path, tmp_path: Path) -> None:
    def edit(value: Json) -> None:
        value["tokens"]["eos_id"] = -3
        value["limits"]["max_target_length"] = 0

    problem = problem_of(edited(good, tmp_path, edit))
    assert "tokens.eos_id is -3" in problem
    assert "limits.max_target_length is 0" in problem


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such checkpoint directory") as caught:
        read_manifest(tmp_path / "none")
    assert caught.value.path == tmp_path / "none"


def test_a_missing_config_is_named(tmp_path: Path) -> None:
    assert problem_of(tmp_path) == "is missing"


def test_a_needed_file_without_a_checksum_is_named(good: Path, tmp_path: Path) -> None:
    for path in good.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    listed = [path for path in tmp_path.iterdir() if path.name not in {"card.md", CHECKSUMS_FILE}]
    (tmp_path / CHECKSUMS_FILE).write_bytes(format_checksums(listed))
    with pytest.raises(CheckpointError, match="has no line in the checksums") as caught:
        read_manifest(tmp_path)
    assert caught.value.path == tmp_path / "card.md"
    assert read_manifest(tmp_path, verify=False).name == "tiny"


MARIAN = ModelConfig(vocab_size=65_001, activation="silu", pad_id=65_000)
M2M100 = ModelConfig(
    vocab_size=128_112,
    d_model=1024,
    num_heads=16,
    d_ff=4096,
    num_encoder_layers=12,
    num_decoder_layers=12,
    norm_placement="pre",
    position="sinusoidal-m2m100",
    position_offset=2,
    output_bias=False,
    pad_id=1,
)


@pytest.mark.parametrize(
    ("network", "tokens", "pair", "files"),
    [
        pytest.param(
            MARIAN,
            SpecialTokens(
                pad_id=65_000, eos_id=0, unk_id=1, start_id=65_000, suppressed_ids=(65_000,)
            ),
            LanguagePair(source="en", target="zh-Hans", source_prefix=(">>cmn_Hans<<",)),
            CheckpointFiles(target_tokenizer="target.spm"),
            id="opus-mt",
        ),
        pytest.param(
            M2M100,
            SpecialTokens(pad_id=1, eos_id=2, unk_id=3, start_id=2),
            LanguagePair(
                source="en", target="zh-Hans", source_prefix=("__en__",), target_prefix=("__zh__",)
            ),
            CheckpointFiles(),
            id="m2m100",
        ),
        pytest.param(
            replace(M2M100, vocab_size=256_206),
            SpecialTokens(pad_id=1, eos_id=2, unk_id=3, start_id=2, forced_first_id=256_200),
            LanguagePair(
                source="en", target="zh-Hans", source_prefix=("eng_Latn",), target_prefix=()
            ),
            CheckpointFiles(source_vocabulary="source.json", target_vocabulary="target.json"),
            id="nllb",
        ),
    ],
)
def test_imported_networks_can_be_described(
    tmp_path: Path,
    network: ModelConfig,
    tokens: SpecialTokens,
    pair: LanguagePair,
    files: CheckpointFiles,
) -> None:
    described = Manifest(
        name="imported",
        description="",
        licence="CC-BY-NC-4.0",
        network=network,
        tokens=tokens,
        pairs=(pair,),
        limits=LengthLimits(max_source_length=512, max_target_length=512),
        licences=(Licence(corpus="OPUS", licence="various", url="https://opus.nlpl.eu"),),
        tensors={"output_bias": TensorEntry(shape=(1, network.vocab_size), dtype="float16")},
        files=files,
    )
    (tmp_path / CONFIG_FILE).write_bytes(format_manifest(described))
    assert read_manifest(tmp_path, verify=False) == described
