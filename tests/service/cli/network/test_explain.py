import sys
from dataclasses import replace
from pathlib import Path

import pytest

from model.errors import ConfigError
from service.cli.main import build_parser, main
from support.tiny_checkpoint import EN_ZH, ZH_EN, tiny_network, write_tiny_checkpoint


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    network = replace(tiny_network(), num_heads=1)  # a map of each head is drawn
    directory = tmp_path_factory.mktemp("explain") / "tiny"
    return write_tiny_checkpoint(directory, pairs=(EN_ZH,), network=network)


def test_a_page_of_pictures_is_written_and_named(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--target", "Two apples.", "--output", str(tmp_path / "out")]
    assert main(["explain", str(checkpoint), "She sees two apples.", *flags]) == 0
    page = Path(capsys.readouterr().out.strip())
    assert page == tmp_path / "out" / "index.html"
    assert "given target: Two apples." in page.read_text(encoding="utf-8")
    assert (tmp_path / "out" / "cross-layer-2.png").is_file()


def test_foreseen_errors_are_one_line(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ["--output", str(tmp_path / "out")]
    for arguments, message in (
        ([str(checkpoint), "She waits. Nobody waits."], "the text is 2 sentences"),
        ([str(checkpoint), "She waits.", "--beam-size", "129"], "--beam-size is 129; it must be"),
        ([str(checkpoint), "She waits.", "--to", "de"], "0 language pairs fit"),
        ([str(checkpoint), "She waits.", "--experiment", "none.yaml"], "none.yaml: No such file"),
        ([str(tmp_path / "none"), "She waits."], "none"),
    ):
        assert main(["explain", *arguments, *output]) == 1
        shown = capsys.readouterr()
        assert shown.err.startswith("dragoman: ")
        assert message in shown.err
        assert not (tmp_path / "out").exists()


def test_without_matplotlib_it_says_what_to_install(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "model.explain.labels", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # an import of it fails
    parsed = build_parser().parse_args(["explain", str(checkpoint), "She waits."])
    with pytest.raises(ConfigError, match=r"pip install -e '\.\[train\]'"):
        parsed.run(parsed)


def test_an_output_folder_that_is_none_or_the_checkpoint_is_refused(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop, gone, file = (tmp_path / name for name in ("loop", "gone", "file"))
    loop.symlink_to(loop)
    gone.symlink_to(tmp_path / "none")
    file.touch()
    before = sorted(checkpoint.iterdir())
    for output, message in (
        (loop, "loop: Too many levels of symbolic links"),
        (gone, "gone: is no directory, and the pictures need one"),
        (file, "file: is no directory, and the pictures need one"),
        (checkpoint, "is a file that this command reads"),
    ):
        assert main(["explain", str(checkpoint), "She waits.", "--output", str(output)]) == 1
        assert message in capsys.readouterr().err
    assert sorted(checkpoint.iterdir()) == before


def test_the_languages_choose_one_of_several_checkpoints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "several").mkdir()
    few = replace(tiny_network(), num_heads=1, num_encoder_layers=1, num_decoder_layers=1)
    for name, pair in (("back", ZH_EN), ("there", EN_ZH)):
        directory = tmp_path / "several" / name
        write_tiny_checkpoint(directory, name=name, pairs=(pair,), network=few)
    output = tmp_path / "out"
    words = ["explain", str(tmp_path / "several"), "She waits.", "--output", str(output)]
    assert main([*words, "--to", "zh"]) == 0
    assert main(words) == 1
    assert "which language? Give --from and --to" in capsys.readouterr().err
