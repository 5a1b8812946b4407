import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.checkpoint.description.config_file import format_manifest, parse_config, read_manifest
from model.checkpoint.files.checksums import CHECKSUMS_FILE, format_checksums
from model.checkpoint.manifest import CONFIG_FILE, CheckpointFiles, Licence, Manifest, TensorEntry
from model.config import LengthLimits, ModelConfig, SpecialTokens
from model.errors import CheckpointError, ConfigError
from model.text.languages.tags import Language, LanguagePair, all_pairs
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
    assert manifest.tokens == TINY_TOKENS
    assert manifest.pairs == (EN_ZH, ZH_EN)
    assert manifest.pair("zh-Hans", "en") == ZH_EN
    assert manifest.pair("en", "fr") is None
    assert manifest.tensors["source_embedding.weight"] == TensorEntry(
        shape=(600, 32), dtype="int8", quantisation="int8-row"
    )
    assert manifest.tensors["output_bias"] == TensorEntry(shape=(600,), dtype="float32")


def test_a_decoder_is_fed_the_start_token_and_the_longest_prefix(manifest: Manifest) -> None:
    assert manifest.max_prefix_length == 1
    pairs = (replace(EN_ZH, target_prefix=("a", "b")), ZH_EN)
    assert replace(manifest, pairs=pairs).max_prefix_length == 3
    assert replace(manifest, pairs=()).max_prefix_length == 1


def test_the_version_is_the_first_thing_in_the_file(good: Path) -> None:
    first, *_ = json.loads((good / CONFIG_FILE).read_bytes()).items()
    assert first == ("schema_version", 1)


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
        "tensors.output_bias.dtype is 'float64'; it must be 'float32', 'float16', 'bfloat16' or",
    ):
        assert part in problem


@pytest.mark.parametrize("version", [0, 3, -1, 10**30])
def test_another_version_is_refused_for_that_alone(
    good: Path, tmp_path: Path, version: int
) -> None:
    def edit(value: Json) -> None:
        value["schema_version"] = version
        value["new_key"] = value.pop("pairs")

    problem = problem_of(edited(good, tmp_path, edit))
    assert problem == f"schema_version is {version}; this Dragoman reads 1 to 2"


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


@given(st.binary() | st.sampled_from([b"{}", b"[]", b'{"schema_version": 1}', b"1", b"null"]))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with pytest.raises(ConfigError):
        parse_config(data, Manifest)


LANGUAGES = (
    Language(tag="en", source_prefix=("__en__",), target_prefix=("__en__",)),
    Language(tag="de", wanted_prefix=("__de__",)),
    Language(tag="zh-Hans"),
)


def test_languages_stand_for_all_their_pairs(manifest: Manifest, tmp_path: Path) -> None:
    many = replace(manifest, languages=LANGUAGES, pairs=all_pairs(LANGUAGES))
    data = format_manifest(many)
    stated = json.loads(data)
    assert (stated["schema_version"], stated["pairs"]) == (2, [])
    assert stated["languages"] == [
        {"tag": "en", "source_prefix": ["__en__"], "target_prefix": ["__en__"]},
        {"tag": "de", "wanted_prefix": ["__de__"]},
        {"tag": "zh-Hans"},
    ]
    (tmp_path / CONFIG_FILE).write_bytes(data)
    found = read_manifest(tmp_path, verify=False)
    assert found == many
    assert found.pair("en", "de") == LanguagePair(
        source="en", target="de", source_prefix=("__en__", "__de__")
    )
    assert found.pair("zh-Hans", "en") == LanguagePair(
        source="zh-Hans", target="en", target_prefix=("__en__",)
    )
    assert found.pair("en", "en") is None


def test_a_network_of_many_languages_is_described_in_few_lines(manifest: Manifest) -> None:
    tags = [f"{a}{b}" for a in "abcdefgh" for b in "abcdefghijklmnopqrstuvwxyz"][:202]
    languages = tuple(Language(tag=tag, source_prefix=(tag,)) for tag in tags)
    many = replace(manifest, languages=languages, pairs=all_pairs(languages))
    assert len(many.pairs) == 202 * 201
    assert len(format_manifest(many)) < len(format_manifest(manifest)) + 202 * 120


def test_pairs_that_are_not_those_of_the_languages_are_not_written(manifest: Manifest) -> None:
    with pytest.raises(ConfigError, match="pairs are not all pairs of languages"):
        format_manifest(replace(manifest, languages=LANGUAGES))


def both(value: Json) -> None:
    value |= {"schema_version": 2, "languages": [{"tag": "en"}, {"tag": "de"}]}


def too_many(value: Json) -> None:
    value |= {"schema_version": 2, "pairs": [], "languages": [{"tag": "en"}] * 513}


def odd_tag(value: Json) -> None:
    value |= {"schema_version": 2, "pairs": [], "languages": [{"tag": "en"}, {"tag": "DE"}]}


def twice(value: Json) -> None:
    value |= {"schema_version": 2, "pairs": [], "languages": [{"tag": "en"}] * 2}


def alone(value: Json) -> None:
    value |= {"schema_version": 2, "pairs": [], "languages": [{"tag": "en"}]}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (both, "pairs and languages are both given"),
        (too_many, "languages has 513 entries; at most 512 are read"),
        (odd_tag, "pairs[0].target is 'DE'; it must be 'de'"),
        (twice, "pairs has en → en 2 times"),
        (alone, "pairs is empty"),
    ],
)
def test_languages_that_cannot_be_meant_are_refused(
    good: Path, tmp_path: Path, edit: Callable[[Json], object], message: str
) -> None:
    assert message in problem_of(edited(good, tmp_path, edit))
