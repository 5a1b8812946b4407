"""What no listing may say."""

import pytest

from model.errors import RegistryError
from model.exchange.registry.listing import (
    MAX_FILES,
    Content,
    RemoteFile,
    checked_files,
    checksum,
    linked,
    path_problem,
)

URL = "https://registry.example/index.json"


def _file(path: str, size: int | None = 1) -> RemoteFile:
    return RemoteFile(path=path, url=f"{URL}/{path}", stored=Content(size=size))


@pytest.mark.parametrize("path", ["model.bin", "vocab.de-en.spm", "a/b.json", "模型.spm", "a b"])
def test_plain_names_are_taken(path: str) -> None:
    assert path_problem(path) is None
    assert checked_files([_file(path)], URL)[0].path == path


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("../evil", "leaves the folder"),
        ("a/../../evil", "leaves the folder"),
        ("/etc/passwd", "leaves the folder"),
        ("a//b", "leaves the folder"),
        ("..\\evil", "leaves the folder"),
        ("", "leaves the folder"),
        (".", "leaves the folder"),
        (".bashrc", "is hidden"),
        ("a/.git", "is hidden"),
        ("~root", "is hidden"),
        ("C:evil", "has signs"),
        ("a\0b", "has signs"),
        ("a\nb", "has signs"),
        ("a\u202eb", "has signs"),
        ("x" * 201, "is longer"),
        ("a/" * 600 + "b", "is longer"),
    ],
)
def test_names_that_harm_are_refused(path: str, problem: str) -> None:
    with pytest.raises(RegistryError, match=problem) as caught:
        checked_files([_file("good"), _file(path)], URL)
    assert "\0" not in str(caught.value)


def test_two_names_that_one_file_system_takes_for_one_are_refused() -> None:
    with pytest.raises(RegistryError, match="twice"):
        checked_files([_file("Model.bin"), _file("model.bin")], URL)
    with pytest.raises(RegistryError, match="twice"):
        checked_files([_file("e\u0301"), _file("\u00e9")], URL)


def test_sizes_and_numbers_have_bounds() -> None:
    with pytest.raises(RegistryError, match="at most"):
        checked_files([_file("a", 2**60)], URL)
    with pytest.raises(RegistryError, match="lists 0 files"):
        checked_files([], URL)
    with pytest.raises(RegistryError, match=f"lists {MAX_FILES + 1} files"):
        checked_files([_file(str(number)) for number in range(MAX_FILES + 1)], URL)


@pytest.mark.parametrize("digest", ["", "abc", "g" * 64, "0" * 63])
def test_a_checksum_that_is_none_is_refused(digest: str) -> None:
    with pytest.raises(RegistryError, match="is no sha256 checksum"):
        checksum("sha256", digest, URL)


def test_a_checksum_may_be_in_capitals() -> None:
    found = checksum("sha256", "A" * 64, URL)
    assert found is not None
    assert found.digest == "a" * 64


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("https://other.example/a", "https://other.example/a"),
        ("a/b", "https://registry.example/a/b"),
        ("/a", "https://registry.example/a"),
    ],
)
def test_links_are_resolved(link: str, url: str) -> None:
    assert linked(URL, link) == url


@pytest.mark.parametrize(
    "link", ["file:///etc/passwd", "ftp://a/b", "ipfs://x", "https://a:b@c/d", "http://[bad"]
)
def test_links_elsewhere_are_refused(link: str) -> None:
    with pytest.raises(RegistryError, match="links to"):
        linked(URL, link)


def test_a_local_document_may_name_local_files() -> None:
    assert linked("file:///mirror/index.json", "a.zip") == "file:///mirror/a.zip"
