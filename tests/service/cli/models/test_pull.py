"""`dragoman pull`, from a name to a checkpoint that a server has; the registries are local."""

import hashlib
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from model.checkpoint.description.config_file import read_manifest
from service.cli.main import main
from service.models.checkpoints.discovery import load_checkpoints
from support.made_imports import MadeImporter, write_made_model
from support.registry_mirror import Fault, Mirror
from support.running_server import running_server
from support.small_disk import small_files

Output = pytest.CaptureFixture[str]


def _put_hub_archive(mirror: Mirror, data: bytes, licence: str = "cc-by-4.0") -> str:
    """A repository whose model is an archive; returns its path in the mirror."""
    mirror.put_hub_repository(
        "owner/made-en-zh", {"made.zip": data, "README.md": b"# made"}, card={"license": licence}
    )
    return next(path for path in mirror.files if path.endswith("/made.zip"))


def test_a_package_of_the_index_becomes_a_checkpoint_that_is_served(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output, importer: MadeImporter
) -> None:
    mirror.put_argos_package("en", "zh", package, version="1.9")
    assert main(["pull", "argos:en-zh"]) == 0
    shown = capsys.readouterr()
    place = tmp_path / "served" / "argos-en-zh"
    assert shown.out == f"{place}\n"
    assert "Argos Translate's package translate-en_zh" in shown.err
    assert "licence:   not stated" in shown.err
    assert "en → zh-Hans" in shown.err
    assert read_manifest(place).name == "argos-en-zh"
    assert importer.options is not None
    assert importer.options.pairs == (("en", "zh-Hans"),)
    assert "dragoman pull argos:en-zh --compute int8" in (place / "card.md").read_text()
    found = load_checkpoints(tmp_path / "served")
    assert [one.directory for one in found.usable] == [place]
    with running_server(tmp_path / "served", tmp_path / "log") as server, server.client() as client:
        reply = client.post("/translate", json={"q": "A cat.", "source": "en", "target": "zh"})
    assert reply.status_code == 200


def test_the_second_pull_downloads_and_converts_nothing(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output, importer: MadeImporter
) -> None:
    mirror.put_argos_package("en", "zh", package, version="1.9")
    assert main(["pull", "argos:en-zh"]) == 0
    mirror.asked.clear()
    importer.num_reads.clear()
    capsys.readouterr()
    assert main(["pull", "argos:en-zh"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'served' / 'argos-en-zh'}\n"
    assert [(one.method, one.num_bytes) for one in mirror.asked if "/v1/" in one.path] == [
        ("HEAD", 0)
    ]
    assert importer.num_reads == {}


def test_a_hub_model_is_shown_with_what_a_person_decides_by(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    path = _put_hub_archive(mirror, package)
    assert main(["pull", "owner/made-en-zh", "--compute", "float16", "--as", "mine"]) == 0
    shown = capsys.readouterr()
    for words in ("hf:owner/made-en-zh", "Hugging Face", "CC-BY-4.0", "in 2 files", "0123456789ab"):
        assert words in shown.err
    manifest = read_manifest(tmp_path / "served" / "mine")
    assert (manifest.name, manifest.licence) == ("mine", "CC-BY-4.0")
    assert manifest.tensors["source_embedding.weight"].dtype == "float16"
    assert mirror.bodies_of(path) == [len(package)]


def test_a_disk_that_is_full_leaves_nothing_and_a_later_pull_needs_no_help(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    """No file may be as large as the package, which the disk tells only when it is there."""
    path = _put_hub_archive(mirror, package)
    with small_files(len(package) // 2):
        assert main(["pull", "owner/made-en-zh"]) == 1
    *_, told = capsys.readouterr().err.splitlines()
    assert told.startswith("dragoman: ")
    assert told.endswith(": File too large")
    left = [one for one in (tmp_path / "cache").rglob("*") if one.is_file()]
    assert all(one.stat().st_size < 10_000 for one in left)
    assert not any(one.name.startswith(".made.zip") for one in left)
    assert list((tmp_path / "served").glob("*")) == []
    assert main(["pull", "owner/made-en-zh"]) == 0
    assert mirror.bodies_of(path)[-1] == len(package)


@pytest.mark.usefixtures("no_waits")
def test_a_pull_that_was_cut_is_resumed_by_the_next_one(
    mirror: Mirror, package: bytes, capsys: Output
) -> None:
    path = _put_hub_archive(mirror, package)
    mirror.faults[path] = [Fault(cut_after=10_000), *[Fault(status=503)] * 4]
    assert main(["pull", "owner/made-en-zh"]) == 1
    assert "status 503" in capsys.readouterr().err
    assert main(["pull", "owner/made-en-zh"]) == 0
    assert sum(mirror.bodies_of(path)) == len(package)


def test_a_licence_is_accepted_once(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    path = _put_hub_archive(mirror, package, "cc-by-nc-4.0")
    name = "owner/made-en-zh"
    assert main(["pull", name]) == 1
    assert "--accept-licence CC-BY-NC-4.0" in capsys.readouterr().err
    assert mirror.bodies_of(path) == []
    assert main(["pull", name, "--accept-licence", "CC-BY-NC-4.0", "--as", "one"]) == 0
    assert main(["pull", name, "--as", "two"]) == 0
    assert read_manifest(tmp_path / "served" / "two").licence == "CC-BY-NC-4.0"
    assert mirror.bodies_of(path) == [len(package)]


def test_a_licence_that_only_the_files_say_counts_before_the_model_is_served(
    mirror: Mirror, package: bytes, importer: MadeImporter, tmp_path: Path, capsys: Output
) -> None:
    importer.change = lambda imported: replace(imported, licence="CC-BY-NC-4.0")
    path = mirror.put_argos_package("en", "zh", package, version="1.9")
    assert main(["pull", "argos:en-zh"]) == 1
    shown = capsys.readouterr().err
    assert "licence, as the files say: CC-BY-NC-4.0" in shown
    assert "--accept-licence CC-BY-NC-4.0" in shown
    assert list((tmp_path / "served").iterdir()) == []
    assert importer.num_reads == {}  # nothing was written to be thrown away
    assert main(["pull", "argos:en-zh", "--accept-licence", "CC-BY-NC-4.0"]) == 0
    assert [one.name for one in (tmp_path / "served").iterdir()] == ["argos-en-zh"]
    assert mirror.bodies_of(path) == [len(package)]


def test_another_version_takes_the_place_only_when_asked_to(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    mirror.put_argos_package("en", "zh", package, version="1.9")
    assert main(["pull", "argos:en-zh"]) == 0
    mirror.put_argos_package("en", "zh", package, version="1.10")
    assert main(["pull", "argos:en-zh"]) == 1
    assert "version 1.9, int8; --replace puts version 1.10, int8" in capsys.readouterr().err
    assert main(["pull", "argos:en-zh", "--replace", "--compute", "float32"]) == 0
    place = tmp_path / "served" / "argos-en-zh"
    assert read_manifest(place).tensors["source_embedding.weight"].dtype == "float32"
    assert [path.name for path in place.parent.iterdir()] == ["argos-en-zh"]


def test_a_replacement_that_fails_leaves_what_was_there(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    mirror.put_argos_package("en", "zh", package, version="1.9")
    assert main(["pull", "argos:en-zh"]) == 0
    place = tmp_path / "served" / "argos-en-zh"
    before = (place / "config.json").read_bytes()
    mirror.put_argos_package("en", "zh", package[:-100], version="1.10")
    assert main(["pull", "argos:en-zh", "--replace"]) == 1
    assert len(capsys.readouterr().err.splitlines()) > 1
    assert (place / "config.json").read_bytes() == before
    assert [path.name for path in place.parent.iterdir()] == ["argos-en-zh"]


def test_what_is_there_and_was_not_pulled_stays(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    mirror.put_argos_package("en", "zh", package, version="1.9")
    place = tmp_path / "served" / "argos-en-zh"
    place.mkdir(parents=True)
    assert main(["pull", "argos:en-zh", "--replace"]) == 1
    assert (
        "is there and nothing says that it was pulled; --as gives another name"
        in capsys.readouterr().err
    )
    assert list(place.iterdir()) == []


def test_a_wrong_checksum_changes_nothing(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    path = _put_hub_archive(mirror, package)
    mirror.files[path] = package[:-1] + b"!"
    assert main(["pull", "owner/made-en-zh"]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"dragoman: {mirror.url}{path}: has the sha256 checksum")
    assert not (tmp_path / "served").exists()
    kept = [path for path in (tmp_path / "cache").rglob("*.zip*") if path.is_file()]
    assert kept == []


def test_a_model_of_no_known_format_is_one_error(
    mirror: Mirror, tmp_path: Path, capsys: Output
) -> None:
    _put_hub_archive(mirror, b"no archive")
    assert main(["pull", "owner/made-en-zh"]) == 1
    assert "is of no format that is known" in capsys.readouterr().err
    assert not (tmp_path / "served" / "made-en-zh").exists()


def test_a_url_is_pulled_with_its_checksum(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    mirror.files["/made.zip"] = package
    digest = hashlib.sha256(package).hexdigest()
    assert main(["pull", f"{mirror.url}/made.zip#sha256={digest}"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'served' / 'made'}\n"


def test_a_path_is_converted_without_a_download(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    folder = tmp_path / "elsewhere"
    assert main(["pull", str(tmp_path / "package.zip"), "--to", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder / 'package'}\n"
    assert mirror.asked == []
    assert main(["pull", str(tmp_path / "package.zip"), "--to", str(folder)]) == 1
    assert "is there; --as gives another name" in capsys.readouterr().err


def test_a_direction_may_be_named(
    mirror: Mirror, package: bytes, importer: MadeImporter, tmp_path: Path
) -> None:
    _put_hub_archive(mirror, package)
    flags = ["--pair", "EN:zh-hant", "--pair", "en:de"]
    assert main(["pull", "owner/made-en-zh", *flags]) == 0
    assert importer.options is not None
    assert importer.options.pairs == (("en", "zh-Hant"), ("en", "de"))
    card = (tmp_path / "served" / "made-en-zh" / "card.md").read_text()
    assert "--pair EN:zh-hant --pair en:de" in card


def test_one_direction_may_be_written_in_several_ways(
    mirror: Mirror, package: bytes, importer: MadeImporter
) -> None:
    _put_hub_archive(mirror, package)
    flags = ["--pair", "en:zh", "--pair", "eng:zho_Hans", "--pair", "en:pb"]
    assert main(["pull", "owner/made-en-zh", *flags]) == 0
    assert importer.options is not None
    assert importer.options.pairs == (("en", "zh-Hans"), ("en", "pt-BR"))


def test_the_directions_that_a_name_suggests_are_left_to_the_files(
    mirror: Mirror, package: bytes, importer: MadeImporter
) -> None:
    """`opus-mt-en-zh` does not say in which script it writes."""
    mirror.put_hub_repository("owner/opus-mt-en-zh", {"made.zip": package})
    assert main(["pull", "owner/opus-mt-en-zh"]) == 0
    assert importer.options is not None
    assert importer.options.pairs == ()


@pytest.mark.parametrize("pair", ["de", "de:", "d_e:en", ":"])
def test_a_direction_that_is_none_is_told_before_a_download(
    mirror: Mirror, capsys: Output, pair: str
) -> None:
    assert main(["pull", "owner/made-en-zh", "--pair", pair]) == 1
    assert "--pair" in capsys.readouterr().err
    assert mirror.asked == []


def test_a_person_is_asked_once_and_may_say_no(
    mirror: Mirror, package: bytes, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _put_hub_archive(mirror, package)
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    answers = iter(["n\n", "\n"])
    monkeypatch.setattr(sys.stdin, "readline", lambda: next(answers), raising=False)
    name = "owner/made-en-zh"
    assert main(["pull", name]) == 1
    shown = capsys.readouterr().err
    assert "and convert it? [Y/n]" in shown
    assert shown.endswith("dragoman: nothing was downloaded\n")
    assert mirror.bodies_of(path) == []
    assert main(["pull", name]) == 0
    assert main(["pull", name, "--as", "two"]) == 0  # it is here, so nothing is asked
    assert list(answers) == []


@pytest.mark.usefixtures("mirror")
def test_a_folder_keeps_its_whole_name(tmp_path: Path) -> None:
    source = write_made_model(tmp_path / "made-1.0")
    assert main(["pull", str(source)]) == 0
    assert (tmp_path / "served" / "made-1.0").is_dir()


@pytest.mark.parametrize("called", ["../evil", "a/b", ".hidden", "", "a\nb"])
def test_a_name_of_a_checkpoint_is_the_name_of_a_folder(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output, called: str
) -> None:
    mirror.put_argos_package("en", "zh", package, version="1.9")
    status = main(["pull", "argos:en-zh", "--as", called])
    assert status == (0 if called == "" else 1)
    assert not (tmp_path / "evil").exists()
    assert called == "" or "--as gives another name" in capsys.readouterr().err


def test_a_checkpoint_is_no_folder_of_checkpoints(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    mirror.put_argos_package("en", "zh", package, version="1.9")
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "config.json").write_text("{}")
    assert main(["pull", "argos:en-zh"]) == 1
    assert "is a checkpoint; --to names a folder of several" in capsys.readouterr().err


@pytest.mark.usefixtures("no_waits")
def test_without_the_registry_what_was_kept_of_it_is_used(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    _put_hub_archive(mirror, package)
    assert main(["pull", "owner/made-en-zh", "--as", "one"]) == 0
    mirror.always["/api/models/owner/made-en-zh/revision/main"] = Fault(status=503)
    assert main(["pull", "owner/made-en-zh", "--as", "two"]) == 0
    assert "what was kept of it is used" in capsys.readouterr().err
    assert (tmp_path / "served" / "two").is_dir()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nonsense", "is no name of a model; names are: hf:OWNER/NAME"),
        ("hf:owner/none", "is not there (status 404)"),
        ("firefox:de-en", "is not there (status 404)"),
        ("https://user:word@a/x.zip", "a user name or a password"),
    ],
)
@pytest.mark.usefixtures("mirror")
def test_errors_are_one_line(capsys: Output, name: str, message: str) -> None:
    assert main(["pull", name]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert message in shown.err


def test_words_of_strangers_move_no_cursor(mirror: Mirror, package: bytes, capsys: Output) -> None:
    _put_hub_archive(mirror, package, "\x1b[2Jmit\nsize: 0")
    assert main(["pull", "owner/made-en-zh"]) == 0
    shown = capsys.readouterr().err
    assert "\x1b" not in shown
    assert "\nsize: 0" not in shown


def test_a_pull_into_the_same_place_waits_and_then_finds_it(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    """Whoever has the place is another process; here it leaves when it is waited for."""
    mirror.put_argos_package("en", "zh", package, version="1.9")
    assert main(["pull", "argos:en-zh"]) == 0
    lock = next((tmp_path / "cache" / "pulled").glob("*.lock"))
    code = (
        "import fcntl, sys; held = open(sys.argv[1]); fcntl.flock(held, fcntl.LOCK_EX);"
        " print(flush=True); sys.stdin.readline()"
    )
    command = [sys.executable, "-c", code, str(lock)]
    capsys.readouterr()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        other.stdout.readline()
        threading.Timer(0.3, other.stdin.close).start()
        assert main(["pull", "argos:en-zh"]) == 0
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == "dragoman: another process pulls the same; waiting for it"
    assert shown[1].endswith("is that already")


def test_the_progress_goes_nowhere_but_to_a_terminal(
    mirror: Mirror, package: bytes, capsys: Output
) -> None:
    mirror.put_argos_package("en", "zh", package, version="1.9")
    assert main(["pull", "argos:en-zh"]) == 0
    assert "\r" not in capsys.readouterr().err


def test_what_came_without_length_and_cannot_be_read_is_downloaded_again(
    mirror: Mirror, package: bytes, tmp_path: Path, capsys: Output
) -> None:
    mirror.files["/made-en-zh.zip"] = package
    mirror.always["/made-en-zh.zip"] = Fault(cut_after=len(package) // 2, has_no_length=True)
    words = ["pull", f"{mirror.url}/made-en-zh.zip", "--pair", "en:zh"]
    assert main(words) == 1
    assert "it is truncated" in capsys.readouterr().err
    mirror.always["/made-en-zh.zip"] = Fault(has_no_length=True)
    assert main(words) == 0
    assert read_manifest(tmp_path / "served" / "made-en-zh").name == "made-en-zh"


@pytest.mark.parametrize("data", [b"<html>Too many requests</html>", None])
def test_only_what_cannot_be_read_is_downloaded_again(
    mirror: Mirror, package: bytes, capsys: Output, data: bytes | None
) -> None:
    """None: a package that cannot be converted as it is asked for, nor would another copy be."""
    mirror.files["/made-en-zh.zip"] = package if data is None else data
    mirror.always["/made-en-zh.zip"] = Fault(has_no_length=True)
    words = ["pull", f"{mirror.url}/made-en-zh.zip", "--pair", "en:zh"]
    wrong = ["--family", "nllb"] if data is None else []
    assert main([*words, *wrong]) == 1
    assert ("--family" if data is None else "of no format") in capsys.readouterr().err
    num_before = len(mirror.bodies_of("/made-en-zh.zip"))
    mirror.files["/made-en-zh.zip"] = package
    assert main(words) == 0
    bodies = mirror.bodies_of("/made-en-zh.zip")[num_before:]
    assert bodies == ([] if data is None else [len(package)])
