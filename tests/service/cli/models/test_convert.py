import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from model.checkpoint.description.config_file import read_manifest
from model.errors import ForeignModelError
from model.exchange.imports import formats
from model.exchange.imports.imported import ImportedModel
from model.exchange.imports.problems import NAME_DIRECTIONS
from model.text.languages.tags import LanguagePair
from service.cli.main import main
from service.cli.models import pull
from service.cli.models.convert import print_error
from support.made_imports import MadeImporter, write_made_model


@pytest.fixture
def importer(monkeypatch: pytest.MonkeyPatch) -> MadeImporter:
    made = MadeImporter()
    monkeypatch.setattr(formats, "IMPORTERS", (made,))
    return made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_made_model(tmp_path / "foreign")


def test_a_checkpoint_is_written_and_named(
    source: Path, tmp_path: Path, importer: MadeImporter, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    flags = ["--name", "mine", "--licence", "MIT", "--from", "en,DE", "--to", "zh-hans,de"]
    assert main(["convert", str(source), str(output), "--compute", "float16", *flags]) == 0
    assert capsys.readouterr() == (f"{output}\n", "")
    manifest = read_manifest(output)
    assert (manifest.name, manifest.licence) == ("mine", "MIT")
    assert manifest.tensors["source_embedding.weight"].dtype == "float16"
    assert importer.options is not None
    assert importer.options.pairs == (("en", "zh-Hans"), ("en", "de"), ("de", "zh-Hans"))
    card = (output / "card.md").read_text()
    words = "dragoman convert foreign out --compute float16 --name mine --licence MIT"
    assert f"{words} --from en,DE --to zh-hans,de" in card
    assert str(tmp_path) not in card


@pytest.mark.parametrize("written", ["zh", "zho", "zho_Hans", "zh-CN"])
def test_what_is_converted_for_a_code_is_asked_for_by_it(
    source: Path,
    tmp_path: Path,
    importer: MadeImporter,
    capsys: pytest.CaptureFixture[str],
    written: str,
) -> None:
    def as_asked(imported: ImportedModel) -> ImportedModel:
        assert importer.options is not None
        pairs = [LanguagePair(source=one, target=two) for one, two in importer.options.pairs]
        return replace(imported, pairs=tuple(pairs))

    importer.change = as_asked
    output = tmp_path / "served" / "out"
    output.parent.mkdir()
    assert main(["convert", str(source), str(output), "--from", "eng", "--to", written]) == 0
    assert main(["models", "--checkpoint", str(output.parent), "--from", "en", "--to", "zh"]) == 0
    assert "en → zh-Hans" in capsys.readouterr().out
    flags = ["--checkpoint", str(output), "--from", "en", "--text", "a"]
    for code in ("zh", "zh-Hans"):
        assert main(["translate", *flags, "--to", code]) == 0
    assert "language pairs fit" not in capsys.readouterr().err


@pytest.mark.usefixtures("importer")
def test_a_card_has_a_name_that_is_not_utf8_as_text(source: Path, tmp_path: Path) -> None:
    output = tmp_path / os.fsdecode(b"out\xff")
    assert main(["convert", str(source), str(output)]) == 0
    assert "dragoman convert foreign 'out?'" in (output / "card.md").read_text()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--from", "de"], "--from and --to go together"),
        (["--from", "de", "--to", "d_e"], "--to: 'd_e' is not a well-formed language tag"),
        (["--from", "de", "--to", "de"], "they leave no direction"),
    ],
)
@pytest.mark.usefixtures("importer")
def test_flags_that_cannot_be_meant_are_refused(
    source: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    flags: list[str],
    message: str,
) -> None:
    assert main(["convert", str(source), str(tmp_path / "out"), *flags]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("importer")
def test_a_source_that_is_nothing_known_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", str(tmp_path), str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == (
        f"dragoman: {tmp_path}: is of no format that is known (the made format)\n"
    )


def test_several_problems_have_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(ForeignModelError(Path("model"), ["a is missing", "b is missing"]))
    assert capsys.readouterr().err == (
        "dragoman: model cannot be converted:\n  a is missing\n  b is missing\n"
    )


@pytest.mark.usefixtures("importer")
def test_a_family_is_said_only_of_files_that_may_not_tell_it(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["convert", str(source), str(tmp_path / "out"), "--family", "nllb"]
    assert main(words) == 1
    assert capsys.readouterr().err == (
        f"dragoman: {source}: the made format: its files say of which family it is; --family does"
        " not apply\n"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("tell", "flags"),
    [
        (print_error, "--from and --to, such as --from de --to en,fr"),
        (pull.print_error, "--pair de:en, which may be repeated"),
    ],
)
def test_a_problem_of_directions_names_the_flags_that_the_command_has(
    tell: Callable[[Exception], None], flags: str, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = f"has no language tags; {NAME_DIRECTIONS}"
    tell(ForeignModelError(Path("m"), [problem]))
    tell(ForeignModelError(Path("m"), ["is odd", problem]))
    told = f"has no language tags; name the directions ({flags})"
    assert capsys.readouterr().err.splitlines() == [
        f"dragoman: m: {told}",
        "dragoman: m cannot be converted:",
        "  is odd",
        f"  {told}",
    ]
