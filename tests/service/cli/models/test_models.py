"""`dragoman models`: what is here, and what can be had; the registries are local."""

import json
from pathlib import Path

import pytest

from service.cli.main import main
from support.registry_mirror import Fault, Mirror

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _offers(mirror: Mirror, package: bytes) -> None:
    mirror.put_argos_package("en", "zh", package, version="1.9")
    mirror.put_firefox_model(
        "en-zh",
        {
            "architecture": "tiny",
            "releaseStatus": "Release",
            "metrics": {"flores200-plus": {"bleu": 30.0}},
        },
        model=b"m",
        vocab=b"v",
    )
    mirror.put_json("/api/models", [{"id": "owner/many", "tags": ["license:mit"], "downloads": 7}])


def test_what_is_here_is_listed(capsys: Output) -> None:
    assert main(["pull", "argos:en-zh"]) == 0
    capsys.readouterr()
    assert main(["models"]) == 0
    heads, row = capsys.readouterr().out.splitlines()
    assert heads.split() == ["NAME", "DIRECTIONS", "LICENCE", "SIZE", "RUNS", "IN"]
    assert row.startswith("argos-en-zh  en → zh-Hans  MIT")
    assert row.split()[-1] in {"int8", "float32", "bfloat16"}


def test_a_folder_that_is_named_must_have_checkpoints(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "empty").mkdir()
    for name, problem in (("none", "there is no checkpoint directory"), ("empty", "has neither")):
        assert main(["models", "--checkpoint", str(tmp_path / name)]) == 1
        shown = capsys.readouterr()
        assert problem in shown.err
        assert str(tmp_path / name) in shown.err
        assert shown.out == ""


def test_only_a_direction_is_listed(capsys: Output) -> None:
    assert main(["pull", "argos:en-zh"]) == 0
    capsys.readouterr()
    assert main(["models", "--from", "en", "--to", "zh"]) == 0
    shown = capsys.readouterr().out
    assert "argos-en-zh" in shown
    assert shown.splitlines()[-1].endswith(": dragoman models --from en --to zh --remote")
    assert main(["models", "--from", "de"]) == 0
    shown = capsys.readouterr().out
    assert "nothing for that direction" in shown
    assert "--remote" not in shown


def test_what_can_be_had_is_listed(capsys: Output) -> None:
    assert main(["models", "--from", "en", "--to", "zh", "--remote"]) == 0
    shown = capsys.readouterr()
    assert "here: nothing" in shown.out
    for words in ("firefox:en-zh/tiny", "BLEU 30", "argos:en-zh", "hf:owner/many", "MPL-2.0"):
        assert words in shown.out
    assert shown.err == ""


def test_a_registry_that_does_not_answer_is_left_out_and_it_is_said(
    mirror: Mirror, capsys: Output
) -> None:
    for path in ("/index.json", "/api/models"):
        mirror.always[path] = Fault(status=503)
    assert main(["models", "--from", "en", "--to", "zh", "--remote"]) == 0
    shown = capsys.readouterr()
    assert "firefox:en-zh/tiny" in shown.out
    assert shown.err.count("is left out") == 2


def test_without_a_network_the_kept_indexes_and_what_is_here_are_listed(
    mirror: Mirror, capsys: Output
) -> None:
    flags = ["models", "--from", "en", "--to", "zh", "--remote"]
    assert main(["pull", "argos:en-zh"]) == 0
    assert main(flags) == 0
    for path in ("/index.json", "/api/models", "/db/models.json"):
        mirror.always[path] = Fault(status=503)
    capsys.readouterr()
    assert main(flags) == 0
    shown = capsys.readouterr()
    assert "argos-en-zh" in shown.out
    assert "firefox:en-zh/tiny" in shown.out
    assert shown.err.count("what was kept of it is used") == 3


def test_a_faulty_checkpoint_hides_no_other(tmp_path: Path, capsys: Output) -> None:
    assert main(["pull", "argos:en-zh"]) == 0
    faulty = tmp_path / "served" / "faulty"
    faulty.mkdir()
    (faulty / "config.json").write_text(json.dumps({"schema_version": 1}))
    capsys.readouterr()
    assert main(["models"]) == 0
    shown = capsys.readouterr()
    assert [row.split()[0] for row in shown.out.splitlines()] == [
        "NAME",
        "argos-en-zh",
        "faulty",
    ]
    assert str(faulty) in shown.err


def test_an_entry_that_cannot_be_looked_into_hides_no_other(tmp_path: Path, capsys: Output) -> None:
    assert main(["pull", "argos:en-zh"]) == 0
    (tmp_path / "served" / "loop").symlink_to("loop")
    capsys.readouterr()
    assert main(["models"]) == 0
    shown = capsys.readouterr()
    assert [row.split()[0] for row in shown.out.splitlines()] == ["NAME", "argos-en-zh", "loop"]
    assert "Too many levels of symbolic links" in shown.err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--remote"], "--remote needs --from and --to"),
        (["--remote", "--from", "de"], "--remote needs --from and --to"),
        (["--from", "d_e"], "--from: 'd_e' is not a well-formed language tag"),
    ],
)
def test_flags_that_cannot_be_meant_are_refused(
    capsys: Output, flags: list[str], message: str
) -> None:
    assert main(["models", *flags]) == 1
    assert message in capsys.readouterr().err
