import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save_file
from torch import Tensor

from model.checkpoint.files.checksums import CHECKSUMS_FILE, format_checksums
from model.checkpoint.manifest import CONFIG_FILE, Manifest
from model.checkpoint.tokenizer import load_tokenizer
from model.checkpoint.weights import TokenizerParts, load_checkpoint, save_checkpoint
from model.config import ModelConfig, SpecialTokens
from model.errors import CheckpointError, ConfigError
from model.loading import load_for_decoding
from model.text.subwords.pieces import PieceModel
from model.text.subwords.tokenizer import Tokenizer
from support.saved_networks import FILES, WEIGHTS, logits, save
from support.tiny_checkpoint import (
    EN_ZH,
    TINY_LICENCES,
    TINY_LIMITS,
    TINY_TOKENS,
    tiny_network,
    tiny_spm,
    tiny_transformer,
    write_tiny_checkpoint,
)

NETWORKS = {
    "shared and tied": tiny_network(),
    "only tied": replace(tiny_network(), share_embeddings=False),
    "only shared": replace(tiny_network(), tie_output=False),
    "nothing shared": replace(
        tiny_network(), share_embeddings=False, tie_output=False, output_bias=False
    ),
    "pre-norm rms": replace(tiny_network(), norm_placement="pre", norm="rmsnorm"),
    "learned": replace(tiny_network(), position="learned", max_positions=80, position_offset=2),
    "relative": replace(tiny_network(), position="relative", attention_bias=False),
    "rope": replace(tiny_network(), position="rope", d_k=6, d_v=10),
    "gated, without biases": replace(
        tiny_network(),
        gated_feed_forward=True,
        feed_forward_bias=False,
        decoder_d_ff=24,
        scale_attention=False,
        scale_output=True,
        activation="gelu-tanh",
    ),
    "normalised embeddings": replace(tiny_network(), embedding_norm=True),
    "ssru": replace(tiny_network(), decoder_cell="ssru"),
    "alibi, unequal depths": replace(tiny_network(), position="alibi", num_encoder_layers=3),
}


def resign(directory: Path) -> None:
    """Write checksums that fit what is there, so that the later checks are reached."""
    files = [path for path in directory.iterdir() if path.name != CHECKSUMS_FILE]
    (directory / CHECKSUMS_FILE).write_bytes(format_checksums(files))


def tensors_of(directory: Path) -> dict[str, Tensor]:
    """Read apart from the file: what `load_file` returns hangs on it."""
    return load((directory / WEIGHTS).read_bytes())


def error_of(directory: Path) -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(directory)
    return caught.value


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_tiny_checkpoint(tmp_path / "tiny", quantise=True)


@pytest.mark.parametrize("name", NETWORKS)
def test_an_unquantised_network_comes_back_bit_for_bit(tmp_path: Path, name: str) -> None:
    transformer = tiny_transformer(NETWORKS[name])
    save(tmp_path / "saved", transformer)
    loaded = load_checkpoint(tmp_path / "saved")
    expected = transformer.state_dict()
    found = loaded.transformer.state_dict()
    assert list(found) == list(expected)
    assert all(torch.equal(found[key], expected[key]) for key in expected)
    assert torch.equal(logits(loaded.transformer), logits(transformer))
    assert not loaded.transformer.training
    assert loaded.manifest.network == NETWORKS[name]


def test_a_quantised_network_is_off_by_at_most_half_a_scale(tmp_path: Path) -> None:
    transformer = tiny_transformer()
    save(tmp_path / "saved", transformer, quantise=True)
    found = load_checkpoint(tmp_path / "saved").transformer.state_dict()
    for name, expected in transformer.state_dict().items():
        if expected.dim() < 2:
            assert torch.equal(found[name], expected)
        else:
            error = (found[name] - expected).abs().flatten(1).amax(dim=1)
            assert (error <= expected.abs().flatten(1).amax(dim=1) / 253.99).all()


def test_saving_a_loaded_quantised_network_writes_the_same_weights(
    directory: Path, tmp_path: Path
) -> None:
    save(tmp_path / "again", load_checkpoint(directory).transformer, quantise=True)
    assert (tmp_path / "again" / WEIGHTS).read_bytes() == (directory / WEIGHTS).read_bytes()


def test_quantised_weights_take_about_a_quarter(tmp_path: Path) -> None:
    network = replace(tiny_network(), d_model=128, d_ff=512)
    sizes = [
        (write_tiny_checkpoint(tmp_path / f"{quantise}", network=network, quantise=quantise))
        for quantise in (True, False)
    ]
    small, large = ((path / WEIGHTS).stat().st_size for path in sizes)
    assert small < 0.3 * large


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("quantise", [True, False])
def test_the_network_has_the_type_that_is_asked_for(
    tmp_path: Path, dtype: torch.dtype, quantise: bool
) -> None:
    save(tmp_path / "saved", tiny_transformer().to(torch.bfloat16), quantise=quantise)
    loaded = load_checkpoint(tmp_path / "saved", dtype=dtype)
    assert {value.dtype for value in loaded.transformer.state_dict().values()} == {dtype}


def test_the_loaded_network_does_not_hang_on_its_file(tmp_path: Path) -> None:
    directory = write_tiny_checkpoint(tmp_path / "tiny", quantise=False)
    loaded = load_checkpoint(directory)
    before = logits(loaded.transformer)
    with (directory / WEIGHTS).open("r+b") as file:
        file.write(b"\xff" * (directory / WEIGHTS).stat().st_size)
    assert torch.equal(logits(loaded.transformer), before)


def test_the_tokenizer_of_the_checkpoint_is_loaded(directory: Path) -> None:
    tokenizer = load_checkpoint(directory).tokenizer
    assert tokenizer.decode(tokenizer.encode("The cat sees the river.", EN_ZH)) == (
        "The cat sees the river."
    )


def test_sides_with_their_own_vocabularies_are_saved_apart(tmp_path: Path) -> None:
    spm = tiny_spm(650)
    network = replace(tiny_network(), target_vocab_size=650, share_embeddings=False)
    manifest = save_checkpoint(
        tmp_path / "saved",
        transformer=tiny_transformer(network),
        name="apart",
        description="",
        licence="Apache-2.0",
        tokens=TINY_TOKENS,
        pairs=(EN_ZH,),
        limits=TINY_LIMITS,
        licences=TINY_LICENCES,
        tokenizer=TokenizerParts(source_pieces=tiny_spm(), target_pieces=spm),
        card="",
    )
    assert manifest.files.target_tokenizer == "target.spm"
    assert manifest.files.target_vocabulary == "target_vocabulary.json"
    tokenizer = load_checkpoint(tmp_path / "saved").tokenizer
    table = PieceModel(spm).table()
    assert tokenizer.encode_target("猫等待")[:-1] == [
        table[piece] for piece in PieceModel(spm).pieces("猫等待")
    ]


# Every file damaged in every way that a disk or a copy can.


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [Path.unlink, truncate, flip_a_bit, empty])
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named(
    directory: Path, name: str, damage: Callable[[Path], object]
) -> None:
    damage(directory / name)
    error = error_of(directory)
    if name != CHECKSUMS_FILE:  # a damaged listing may also speak of a file that is not there
        assert error.path == directory / name
    assert error.problem


def test_a_cut_weights_file_is_refused_even_when_its_checksum_fits(directory: Path) -> None:
    truncate(directory / WEIGHTS)
    resign(directory)
    error = error_of(directory)
    assert error.path == directory / WEIGHTS
    assert "it has 44672 bytes; it can have 76736 to" in error.problem


@pytest.mark.parametrize("content", [b"", b"1234567", b"\xff" * 8, b"\xff" * 5000, b"\0" * 100])
def test_a_header_that_claims_too_much_is_refused_before_it_is_read(
    directory: Path, content: bytes
) -> None:
    (directory / WEIGHTS).write_bytes(content)
    resign(directory)
    assert error_of(directory).path == directory / WEIGHTS


def test_a_pickle_is_not_read(directory: Path) -> None:
    torch.save(tensors_of(directory), directory / WEIGHTS)
    resign(directory)
    assert error_of(directory).path == directory / WEIGHTS


def test_all_missing_unexpected_and_mis_shaped_tensors_are_listed(directory: Path) -> None:
    tensors = tensors_of(directory)
    del tensors["output_bias"]
    tensors["extra"] = torch.zeros(2)
    tensors["source_embedding.weight"] = tensors["source_embedding.weight"][:599].clone()
    tensors["source_embedding.weight.scale"] = tensors["source_embedding.weight.scale"].half()
    save_file(tensors, directory / WEIGHTS)
    resign(directory)
    error = error_of(directory)
    assert error.path == directory / WEIGHTS
    for part in (
        "output_bias is missing",
        "extra is unexpected",
        "source_embedding.weight is I8 [599, 32], expected I8 [600, 32]",
        "source_embedding.weight.scale is F16 [600], expected F32 [600]",
    ):
        assert part in error.problem


def test_entries_that_do_not_fit_the_network_are_listed(directory: Path) -> None:
    value = json.loads((directory / CONFIG_FILE).read_bytes())
    value["network"]["d_ff"] = 96
    value["tensors"]["extra"] = {"shape": [1], "dtype": "float32", "quantisation": None}
    del value["tensors"]["output_bias"]
    (directory / CONFIG_FILE).write_text(json.dumps(value), encoding="utf-8")
    resign(directory)
    error = error_of(directory)
    assert error.path == directory / CONFIG_FILE
    assert "output_bias is missing" in error.problem
    assert "extra is unexpected" in error.problem
    assert "encoder.layers.0.feed_forward.up_proj.weight is [64, 32], expected [96, 32]" in (
        error.problem
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", ["output_bias", "source_embedding.weight.scale"])
def test_weights_that_are_not_finite_are_not_loaded(
    directory: Path, name: str, value: float
) -> None:
    tensors = tensors_of(directory)
    tensors[name][3] = value
    save_file(tensors, directory / WEIGHTS)
    resign(directory)
    error = error_of(directory)
    assert error.path == directory / WEIGHTS
    assert "values that are not finite" in error.problem
    assert name.removesuffix(".scale") in error.problem


def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path) -> None:
    transformer = tiny_transformer()
    with torch.no_grad():
        transformer.state_dict()["output_bias"][7] = float("nan")
    with pytest.raises(ConfigError, match="output_bias has values that are not finite"):
        save(tmp_path / "saved", transformer)
    assert list(tmp_path.iterdir()) == []


def test_parts_that_do_not_fit_are_not_saved(tmp_path: Path) -> None:
    tokens = SpecialTokens(pad_id=0, eos_id=1, unk_id=2, start_id=0, suppressed_ids=(9999,))
    with pytest.raises(ConfigError, match=r"tokens\.suppressed_ids has 9999"):
        write_tiny_checkpoint(tmp_path / "saved", tokens=tokens)
    with pytest.raises(ConfigError, match="lacks 100 ids"):
        write_tiny_checkpoint(tmp_path / "saved", network=tiny_network(700))
    assert list(tmp_path.iterdir()) == []


def test_equal_parts_make_equal_files(tmp_path: Path) -> None:
    one = write_tiny_checkpoint(tmp_path / "one", quantise=True)
    two = write_tiny_checkpoint(tmp_path / "two", quantise=True)
    for name in FILES:
        assert (one / name).read_bytes() == (two / name).read_bytes()


def test_a_moved_checkpoint_still_loads(directory: Path, tmp_path: Path) -> None:
    shutil.move(directory, tmp_path / "elsewhere")
    assert load_checkpoint(tmp_path / "elsewhere").manifest.name == "tiny"


def test_a_config_is_a_network_of_its_own(directory: Path) -> None:
    network: ModelConfig = load_checkpoint(directory).transformer.config
    assert network == tiny_network()


@pytest.mark.parametrize("load", [load_checkpoint, load_for_decoding])
@pytest.mark.parametrize("seed", [6, None])
def test_a_checkpoint_that_is_replaced_while_it_is_read_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    load: Callable[[Path], object],
    seed: int | None,
) -> None:
    directory = write_tiny_checkpoint(tmp_path / "tiny", quantise=True)

    def load_and_replace(folder: Path, manifest: Manifest) -> Tokenizer:
        tokenizer = load_tokenizer(folder, manifest)
        shutil.rmtree(folder)
        if seed is not None:
            write_tiny_checkpoint(folder, quantise=True, seed=seed)
        return tokenizer

    for name in ("model.checkpoint.weights", "model.loading"):
        monkeypatch.setattr(f"{name}.load_tokenizer", load_and_replace)
    with pytest.raises(CheckpointError, match=r"was replaced while it was read|cannot be read: No"):
        load(directory)
