import json
from pathlib import Path

import pytest

from model.errors import CheckpointError, ConfigError
from service.cli.main import build_parser, main
from support.marian_oracle import FIXTURES
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("export") / "tiny", pairs=(EN_ZH,))


def test_the_help_names_all_formats(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["export", "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert "usage: dragoman export" in shown
    assert "{huggingface,ctranslate2,marian}" in shown


def test_a_hugging_face_directory_is_written_and_named(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "marian"
    assert main(["export", str(checkpoint), str(output), "--to", "huggingface"]) == 0
    assert capsys.readouterr().out == f"{output}\n"
    assert {path.name for path in output.iterdir()} == {
        "README.md",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "source.spm",
        "target.spm",
        "tokenizer_config.json",
        "vocab.json",
    }
    assert json.loads((output / "config.json").read_text())["architectures"] == ["MarianMTModel"]


def test_a_ctranslate2_directory_is_written_in_the_type_asked_for(
    checkpoint: Path, tmp_path: Path
) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
    output = tmp_path / "rival"
    flags = ["--to", "ctranslate2", "--quantization", "int8"]
    assert main(["export", str(checkpoint), str(output), *flags]) == 0
    rival = ctranslate2.Translator(str(output), intra_threads=1)
    assert rival.compute_type == "int8_float32"


def test_marians_own_files_are_written_and_converted_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    student = tmp_path / "student"
    assert main(["convert", str(FIXTURES / "student"), str(student), "--compute", "float32"]) == 0
    output, again = tmp_path / "marian", tmp_path / "again"
    capsys.readouterr()
    assert main(["export", str(student), str(output), "--to", "marian"]) == 0
    assert capsys.readouterr().out == f"{output}\n"
    assert main(["convert", str(output), str(again), "--compute", "float32"]) == 0
    weights = [(folder / "model.safetensors").read_bytes() for folder in (student, again)]
    assert weights[0] == weights[1]


@pytest.mark.parametrize(
    ("flags", "error", "message"),
    [
        (
            ["--to", "huggingface", "--quantization", "int8"],
            ConfigError,
            "--quantization is int8; only --to ctranslate2 takes one",
        ),
        (["--to", "huggingface"], CheckpointError, "exists; an export replaces nothing"),
    ],
)
def test_what_cannot_be_done_is_said(
    checkpoint: Path, tmp_path: Path, flags: list[str], error: type[Exception], message: str
) -> None:
    parsed = build_parser().parse_args(["export", str(checkpoint), str(tmp_path), *flags])
    with pytest.raises(error, match=message):
        parsed.run(parsed)


def test_an_output_that_holds_the_checkpoint_or_is_it_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "several"
    folder.mkdir()
    checkpoint = write_tiny_checkpoint(folder / "tiny", pairs=(EN_ZH,))
    (tmp_path / "link").symlink_to(checkpoint)
    before = {path: path.read_bytes() for path in checkpoint.iterdir()}
    for output in (checkpoint, folder, tmp_path / "link", checkpoint / "config.json"):
        assert main(["export", str(checkpoint), str(output), "--to", "huggingface"]) == 1
        assert f"{output}: exists; an export replaces nothing" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in checkpoint.iterdir()} == before
    assert list(folder.iterdir()) == [checkpoint]


def test_of_several_checkpoints_one_must_be_named(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        (tmp_path / "several" / name).mkdir(parents=True)
    words = [str(tmp_path / "several"), str(tmp_path / "out"), "--to", "huggingface"]
    assert main(["export", *words]) == 1
    assert "several has 2 checkpoints; name one of a, b" in capsys.readouterr().err
