"""Packages of the Argos index, and archives at URLs, from a mirror in their layouts."""

import hashlib
from pathlib import Path

import pytest

from model.errors import RegistryError
from model.exchange.registry.argos import Argos
from model.exchange.registry.cache import Cache
from model.exchange.registry.names import ArchiveName, ArgosName, OpusName
from model.exchange.registry.pulling import pull
from model.exchange.registry.urls import find_archive, find_opus
from support.registry_mirror import Fault, Mirror, Waits, quick_documents, quick_downloader

DATA = b"PK" + b"package" * 10_000


@pytest.fixture
def argos(mirror: Mirror, cache: Cache, waits: Waits) -> Argos:
    mirror.put_argos_package("en", "de", b"old", version="1.9")
    mirror.put_argos_package("en", "de", DATA, version="1.10")
    mirror.put_argos_package("en", "zt", DATA, version="1.9")
    return Argos(mirror.url, quick_documents(cache, waits))


def test_the_newest_package_is_taken_by_the_first_link_that_can_be_followed(
    argos: Argos, mirror: Mirror, cache: Cache, waits: Waits
) -> None:
    listing = argos.find(ArgosName(source="en", target="de"))
    assert (listing.version, listing.folder) == ("1.10", "argos-en-de")
    assert (listing.pairs, listing.licence) == ((("en", "de"),), None)
    assert listing.known_bytes == len(DATA)
    path = pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    assert path.name == "translate-en_de-1_10.argosmodel"
    assert path.read_bytes() == DATA


def test_codes_become_tags(argos: Argos) -> None:
    assert argos.find(ArgosName(source="en", target="zt")).pairs == (("en", "zh-Hant"),)
    assert [one.name for one in argos.offers("en", "zh-Hant")] == ["argos:en-zt"]
    assert [one.note for one in argos.offers("en", "de")] == ["version 1.9", "version 1.10"]
    assert argos.offers("de", "en") == ()


def test_a_version_of_thousands_of_digits_is_the_oldest(argos: Argos, mirror: Mirror) -> None:
    mirror.put_argos_package("en", "de", b"odd", version="1." + "9" * 5000)
    assert argos.find(ArgosName(source="en", target="de")).version == "1.10"


def test_a_package_that_is_not_there_is_told(argos: Argos) -> None:
    with pytest.raises(RegistryError, match="has no package from de to en"):
        argos.find(ArgosName(source="de", target="en"))


def test_a_package_whose_file_is_gone_is_told(argos: Argos, mirror: Mirror) -> None:
    del mirror.files["/v1/translate-en_zt-1_9.argosmodel"]
    with pytest.raises(RegistryError, match=r"translate-en_zt-1_9\.argosmodel: is not there"):
        argos.find(ArgosName(source="en", target="zt"))


def test_links_may_be_relative_to_a_mirrors_index(
    mirror: Mirror, cache: Cache, waits: Waits, tmp_path: Path
) -> None:
    (tmp_path / "x.argosmodel").write_bytes(DATA)
    index = '[{"from_code": "en", "to_code": "de", "links": ["x.argosmodel"]}]'
    (tmp_path / "index.json").write_text(index)
    argos = Argos(tmp_path.as_uri(), quick_documents(cache, waits))
    listing = argos.find(ArgosName(source="en", target="de"))
    path = pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    assert path.read_bytes() == DATA


@pytest.mark.parametrize(
    ("links", "problem"),
    [
        ([], "has 0 links"),
        (["ipfs://x"], "has 1 links, none of them"),
        (["file:///etc/passwd"], "links to"),
        (["https://user:word@a/x.zip"], "links to"),
        (["/v1/.."], "leaves the folder"),
        (["/v1/.hidden"], "is hidden"),
    ],
)
def test_hostile_links_are_refused(
    mirror: Mirror, cache: Cache, waits: Waits, links: list[str], problem: str
) -> None:
    mirror.files["/v1/.hidden"] = mirror.files["/v1/.."] = mirror.files["/"] = b"x"
    mirror.put_json("/index.json", [{"from_code": "en", "to_code": "de", "links": links}])
    with pytest.raises(RegistryError, match=problem):
        Argos(mirror.url, quick_documents(cache, waits)).find(ArgosName(source="en", target="de"))


class TestArchives:
    def test_its_checksum_is_that_of_the_name(
        self, mirror: Mirror, cache: Cache, waits: Waits
    ) -> None:
        mirror.files["/x.zip"] = DATA
        digest = hashlib.sha256(DATA).hexdigest()
        name = ArchiveName(url=f"{mirror.url}/x.zip", sha256=digest)
        listing = find_archive(name, quick_documents(cache, waits))
        assert (listing.version, listing.folder, listing.archive) == (digest[:16], "x", "x.zip")
        path = pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
        assert path.read_bytes() == DATA
        mirror.files["/y.zip"] = DATA
        other = ArchiveName(url=f"{mirror.url}/y.zip", sha256="0" * 64)
        with pytest.raises(RegistryError, match="sha256"):
            pull(
                find_archive(other, quick_documents(cache, waits)),
                cache,
                quick_downloader(waits),
                on_wait=lambda: None,
            )

    def test_another_file_at_the_same_address_is_another_version(
        self, mirror: Mirror, cache: Cache, waits: Waits
    ) -> None:
        name, documents = ArchiveName(url=f"{mirror.url}/x.zip"), quick_documents(cache, waits)
        versions = []
        for data in (DATA, DATA + b"x", DATA):
            mirror.files["/x.zip"] = data
            versions.append(find_archive(name, documents).version)
        assert versions[0] == versions[2] != versions[1]

    def test_a_server_without_head_is_asked_for_the_file_alone(
        self, mirror: Mirror, cache: Cache, waits: Waits
    ) -> None:
        mirror.files["/x.zip"] = DATA
        mirror.faults["/x.zip"] = [Fault(status=405)]
        name = ArchiveName(url=f"{mirror.url}/x.zip")
        listing = find_archive(name, quick_documents(cache, waits))
        assert listing.known_bytes == 0
        path = pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
        assert path.read_bytes() == DATA

    def test_a_release_of_opus_mt_has_its_direction_and_licence(
        self, mirror: Mirror, cache: Cache, waits: Waits
    ) -> None:
        mirror.files["/en-de/opus-2020-02-26.zip"] = DATA
        name = OpusName(path="en-de/opus-2020-02-26.zip")
        listing = find_opus(name, mirror.url, quick_documents(cache, waits))
        assert (listing.name, listing.folder) == (str(name), "opus-mt-en-de")
        assert listing.licence == "CC-BY-4.0"
        assert listing.pairs == (("en", "de"),)

    def test_groups_of_languages_are_no_direction(
        self, mirror: Mirror, cache: Cache, waits: Waits
    ) -> None:
        mirror.files["/en-ROMANCE/x.zip"] = DATA
        name = OpusName(path="en-ROMANCE/x.zip")
        assert find_opus(name, mirror.url, quick_documents(cache, waits)).pairs == ()
