"""What a name means."""

from pathlib import Path

import pytest

from model.errors import ConfigError
from model.exchange.registry.names import (
    FORMS,
    ArchiveName,
    ArgosName,
    FirefoxName,
    HubName,
    LocalName,
    ModelName,
    OpusName,
    parse_name,
)

DIGEST = "0" * 64


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("hf:Helsinki-NLP/opus-mt-en-de", HubName(repository="Helsinki-NLP/opus-mt-en-de")),
        ("Helsinki-NLP/opus-mt-en-de", HubName(repository="Helsinki-NLP/opus-mt-en-de")),
        ("a/b@v1.0", HubName(repository="a/b", revision="v1.0")),
        ("hf:a/b@refs/pr/5", HubName(repository="a/b", revision="refs/pr/5")),
        ("https://huggingface.co/a/b", HubName(repository="a/b")),
        ("https://huggingface.co/a/b/", HubName(repository="a/b")),
        ("https://huggingface.co/a/b/tree/v1.0", HubName(repository="a/b", revision="v1.0")),
        ("firefox:de-en", FirefoxName(source="de", target="en")),
        ("firefox:de-en/tiny", FirefoxName(source="de", target="en", architecture="tiny")),
        (
            "firefox:en-zh-Hant/base-memory",
            FirefoxName(source="en", target="zh-Hant", architecture="base-memory"),
        ),
        ("firefox:en-zh_hant", FirefoxName(source="en", target="zh-Hant")),
        ("firefox:zh_hant-en", FirefoxName(source="zh-Hant", target="en")),
        ("argos:en-de", ArgosName(source="en", target="de")),
        ("argos:translate-en_zt", ArgosName(source="en", target="zt")),
        ("opus:en-de/opus-2020-02-26.zip", OpusName(path="en-de/opus-2020-02-26.zip")),
        ("opus:https://a/en-de/x.zip", ArchiveName(url="https://a/en-de/x.zip", is_opus=True)),
        ("https://a/x.argosmodel", ArchiveName(url="https://a/x.argosmodel")),
        (f"http://a/x.zip#sha256={DIGEST}", ArchiveName(url="http://a/x.zip", sha256=DIGEST)),
        ("file:///models/x.zip", ArchiveName(url="file:///models/x.zip")),
        ("/models/x", LocalName(path=Path("/models/x"))),
        ("./x", LocalName(path=Path("x"))),
        ("../x.zip", LocalName(path=Path("../x.zip"))),
    ],
)
def test_every_form_has_its_meaning(text: str, meaning: ModelName) -> None:
    assert parse_name(text) == meaning


@pytest.mark.parametrize(
    "name",
    [
        "hf:a/b@main2",
        "hf:a/b",
        "firefox:de-en/tiny",
        "firefox:en-zh-Hant",
        "argos:en-de",
        "opus:en-de/x.zip",
    ],
)
def test_a_name_in_full_is_a_name_again(name: str) -> None:
    assert str(parse_name(name)) == name


def test_a_home_is_meant_by_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    assert parse_name("~/x") == LocalName(path=Path("/somewhere/x"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "opus-mt-en-de",
        "a/b/c",
        "hf:",
        "hf:a",
        "hf:../b",
        "hf:a/..",
        "hf:a/b/../c",
        "hf:a/b@../c",
        "hf:a/b@refs/../c",
        "hf:a/b@refs/",
        "hf:a/b?x=1",
        "firefox:de",
        "firefox:de-en/../x",
        "firefox:de-en/",
        "argos:../x",
        "argos:translate-en_de/../x",
        "opus:../x.zip",
        "opus:en-de/../../x.zip",
        "opus:x",
        "unknown:x",
        "ftp://a/x.zip",
        "https://[bad/x.zip",
        "a b",
        "\x1b[2J",
        "a/b\n",
    ],
)
def test_what_means_nothing_is_told_the_forms(text: str) -> None:
    with pytest.raises(ConfigError, match="is no name of a model") as caught:
        parse_name(text)
    assert all(form in str(caught.value) for form in FORMS)
    assert "\x1b" not in str(caught.value)


def test_a_name_that_is_a_path_too_is_ambiguous(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a/b").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"a/b is also a path here: write \./a/b or hf:a/b"):
        parse_name("a/b")
    assert parse_name("hf:a/b") == HubName(repository="a/b")


def test_a_folder_here_may_be_named_without_a_dot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "opus-mt-en-de").mkdir()
    assert parse_name("opus-mt-en-de") == LocalName(path=Path("opus-mt-en-de"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("https://user:word@a/x.zip", "a user name or a password"),
        ("https://huggingface.co/a/b/blob/main/x.bin", "does not end in"),
        ("https://a/x.bin", r"does not end in \.zip or \.argosmodel"),
        ("https://a/x.zip#sha256=abc", "is no checksum"),
    ],
)
def test_a_url_that_cannot_be_used_is_told_why(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        parse_name(text)
    assert "word@" not in str(caught.value)
