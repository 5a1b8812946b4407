"""Which arithmetic a checkpoint is loaded for, and what is refused."""

import hashlib
import shutil
import subprocess
import sys
from dataclasses import replace
from io import BufferedReader
from pathlib import Path

import pytest
import torch

from model.arithmetic import ComputeType
from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.files.checksums import CHECKSUMS_FILE
from model.checkpoint.weights import load_checkpoint
from model.errors import CheckpointError, UnsupportedVariantError
from model.float_loading import as_served, load_floats
from model.loading import _float_reason, load_for_decoding
from model.native import kernels
from support.logged import events_of
from support.tiny_checkpoint import tiny_network, write_tiny_checkpoint


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("checkpoints") / "tiny"
    write_tiny_checkpoint(directory)
    return directory


def test_a_cpu_computes_in_int8_where_it_can_and_in_float32_where_it_is_told(
    checkpoint: Path,
) -> None:
    best = "float32" if kernels.find_problem() else "int8"
    assert load_for_decoding(checkpoint).compute_type == best
    assert load_for_decoding(checkpoint, compute_type="float32").compute_type == "float32"


def test_the_arithmetic_is_given_with_its_reason(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reason(compute_type: ComputeType = "auto") -> tuple[str, str, str]:
        loaded = load_for_decoding(checkpoint, compute_type=compute_type)
        return loaded.compute_type, loaded.compute_reason, loaded.compute_problem

    if kernels.find_problem() is None:
        assert reason() == ("int8", "best", "")
        assert reason("int8") == ("int8", "asked_for", "")
    assert reason("float32") == ("float32", "asked_for", "")
    monkeypatch.setattr(kernels, "missing_flags", lambda: ["fma"])
    assert reason() == ("float32", "processor", "the processor has no fma")
    monkeypatch.setattr(kernels, "missing_flags", list)
    monkeypatch.setattr(kernels, "EXTENSION", "model.native._absent")
    built = "model.native._absent was not built when the package was installed"
    assert reason() == ("float32", "not_built", built)


def test_positions_that_the_kernels_do_not_run_are_a_reason(tmp_path: Path) -> None:
    manifest = read_manifest(write_tiny_checkpoint(tmp_path / "tiny"))
    rotary = replace(manifest, network=replace(manifest.network, position="rope"))
    assert _float_reason(rotary, torch.device("cpu")) == "network"
    assert _float_reason(rotary, torch.device("cuda")) == "best"


def test_a_network_that_is_decoded_without_caches_is_loaded_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    network = replace(tiny_network(), position="rope")
    loaded = load_for_decoding(write_tiny_checkpoint(tmp_path / "rope", network=network))
    assert (loaded.compute_type, loaded.compute_reason) == ("float32", "network")
    assert "position is 'rope'" in loaded.compute_problem
    [(event, fields)] = events_of(caplog)
    assert (event, fields["checkpoint"]) == ("slow_decoding", "tiny")
    assert "network.position is 'rope'" in str(fields["reason"])
    caplog.clear()
    load_for_decoding(write_tiny_checkpoint(tmp_path / "absolute"))
    assert caplog.messages == []


@pytest.mark.parametrize("compute_type", ["auto", "float32"])
def test_a_checkpoint_with_one_changed_byte_is_refused_in_every_arithmetic(
    checkpoint: Path, tmp_path: Path, compute_type: ComputeType
) -> None:
    names = [path.name for path in checkpoint.iterdir()]
    assert len(names) >= 5
    for name in names:
        copy = tmp_path / name
        shutil.copytree(checkpoint, copy)
        data = bytearray((copy / name).read_bytes())
        data[-2] ^= 1
        (copy / name).write_bytes(data)
        with pytest.raises(CheckpointError):
            load_for_decoding(copy, compute_type=compute_type)


@pytest.mark.parametrize("compute_type", ["auto", "float32"])
def test_a_file_without_a_checksum_is_refused_in_every_arithmetic(
    checkpoint: Path, tmp_path: Path, compute_type: ComputeType
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    weights = read_manifest(copy).files.weights
    listing = copy / CHECKSUMS_FILE
    lines = listing.read_text(encoding="utf-8").splitlines(keepends=True)
    listing.write_text("".join(line for line in lines if weights not in line), encoding="utf-8")
    with pytest.raises(CheckpointError, match="has no line in the checksums"):
        load_for_decoding(copy, compute_type=compute_type)


@pytest.mark.parametrize("compute_type", ["auto", "float32"])
def test_every_file_is_compared_with_its_checksum_once(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, compute_type: ComputeType
) -> None:
    compared: list[str] = []
    digest = hashlib.file_digest

    def noting(file: BufferedReader, kind: str) -> object:
        compared.append(Path(file.name).name)
        return digest(file, kind)

    monkeypatch.setattr(hashlib, "file_digest", noting)
    load_for_decoding(checkpoint, compute_type=compute_type)
    others = {path.name for path in checkpoint.iterdir()} - {CHECKSUMS_FILE}
    assert sorted(compared) == sorted(others)


def test_bfloat16_is_for_gpus(checkpoint: Path) -> None:
    with pytest.raises(UnsupportedVariantError, match="'bfloat16', which is for GPUs"):
        load_for_decoding(checkpoint, compute_type="bfloat16")


@pytest.mark.parametrize("settings", [{}, {"position": "relative"}, {"decoder_cell": "ssru"}])
def test_a_network_for_bfloat16_is_never_there_in_float32(
    tmp_path: Path, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = write_tiny_checkpoint(
        tmp_path / "tiny", network=replace(tiny_network(), **settings)
    )
    manifest, moved, to = read_manifest(directory), set[torch.dtype](), torch.Tensor.to

    def noted(tensor: torch.Tensor, *arguments: object, **options: object) -> torch.Tensor:
        if arguments == ("cpu",):  # to the device
            moved.add(tensor.dtype)
        return to(tensor, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(torch.Tensor, "to", noted)
    loaded = load_floats(
        directory,
        manifest,
        device="cpu",
        compute_type="bfloat16",
        compute_reason="best",
        compute_problem="",
        num_threads=None,
    )
    assert moved == {torch.bfloat16}
    assert isinstance(loaded.network, torch.nn.Module)
    found = loaded.network.state_dict()
    wanted = load_checkpoint(directory).transformer.to(torch.bfloat16).state_dict()
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_a_network_in_memory_is_served_as_it_would_be_from_a_file(checkpoint: Path) -> None:
    loaded = load_checkpoint(checkpoint)
    assert as_served(loaded).compute_type == load_for_decoding(checkpoint).compute_type
    elsewhere = replace(loaded, transformer=loaded.transformer.to("meta"))  # no CPU: as a GPU
    assert as_served(elsewhere).compute_type == "bfloat16"
    assert elsewhere.transformer.target_embedding.weight.dtype == torch.float32  # it trains on


@pytest.mark.gpu
def test_a_gpu_computes_in_bfloat16_unless_it_is_told_otherwise(checkpoint: Path) -> None:
    for compute_type, dtype in (("auto", torch.bfloat16), ("float32", torch.float32)):
        runnable = load_for_decoding(checkpoint, device="cuda", compute_type=compute_type)  # type: ignore[arg-type]
        assert runnable.network.target_embedding.weight.dtype == dtype  # type: ignore[union-attr]
    with pytest.raises(UnsupportedVariantError, match="int8 kernels run on a CPU"):
        load_for_decoding(checkpoint, device="cuda", compute_type="int8")


_TRANSLATE = """
import sys
from service.cli.main import main
import service.engine.worker.process

flags = ["--checkpoint", sys.argv[1], "--device", "cpu", "--from", "en", "--to", "zh"]
assert main(["translate", *flags, "--text", "A word."]) == 0
slow = {"torch", "transformers", "sacrebleu", "lxml", "fastapi", "pydantic", "tqdm"}
slow &= {*sys.modules}
assert not slow, slow
"""


@pytest.mark.skipif(kernels.find_problem() is not None, reason="there is no int8 here")
def test_a_translation_in_int8_and_its_engine_import_nothing_slow(checkpoint: Path) -> None:
    command = [sys.executable, "-c", _TRANSLATE, str(checkpoint)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
