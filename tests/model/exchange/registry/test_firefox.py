"""Pairs of the Firefox registry, from a mirror in its layout."""

import gzip
import hashlib
import json

import pytest

from model.errors import RegistryError
from model.exchange.registry.cache import Cache
from model.exchange.registry.firefox import Firefox
from model.exchange.registry.names import FirefoxName, parse_name
from model.exchange.registry.pulling import pull
from support.registry_mirror import Mirror, Waits, quick_documents, quick_downloader

INDEX = "/db/models.json"
MODEL = b"model" * 50_000
TINY = {
    "architecture": "tiny",
    "releaseStatus": "Release",
    "metrics": {"flores200-plus": {"bleu": 39.6, "comet22": 0.871}},
}
MEMORY = {
    "architecture": "base-memory",
    "releaseStatus": "Release",
    "metrics": {"flores200-plus": {"bleu": 41.4, "comet22": 0.883}, "wmt24pp": {"bleu": 30.0}},
}
BASE = {"architecture": "base", "releaseStatus": None}


@pytest.fixture
def firefox(mirror: Mirror, cache: Cache, waits: Waits) -> Firefox:
    for entry in (BASE, TINY, MEMORY):
        mirror.put_firefox_model("de-en", entry, model=MODEL, vocab=b"v", lexicalShortlist=b"l")
    mirror.put_firefox_model("en-zh_hant", TINY, model=b"m", srcVocab=b"s", trgVocab=b"t")
    return Firefox(mirror.url, quick_documents(cache, waits))


def test_the_best_released_model_is_taken(firefox: Firefox) -> None:
    listing = firefox.find(FirefoxName(source="de", target="en"))
    assert listing.name == "firefox:de-en/base-memory"
    assert listing.folder == "firefox-de-en-base-memory"
    assert (listing.licence, listing.pairs) == ("MPL-2.0", (("de", "en"),))
    assert [(one.metric, one.value, one.test_set) for one in listing.scores] == [
        ("COMET-22", 0.883, "flores200-plus"),
        ("BLEU", 41.4, "flores200-plus"),
        ("BLEU", 30.0, "wmt24pp"),
    ]


def test_an_architecture_that_is_named_is_taken_released_or_not(firefox: Firefox) -> None:
    for architecture in ("tiny", "base"):
        name = FirefoxName(source="de", target="en", architecture=architecture)
        assert firefox.find(name).name == str(name)


def test_files_are_unpacked_and_verified(
    firefox: Firefox, mirror: Mirror, cache: Cache, waits: Waits
) -> None:
    listing = firefox.find(FirefoxName(source="de", target="en"))
    folder = pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found == {
        "model.deen.intgemm.alphas.bin": MODEL,
        "vocab.deen.spm": b"v",
        "lex.50.50.deen.s2t.bin": b"l",
        ".vocab.deen.spm.sha256": hashlib.sha256(b"v").hexdigest().encode(),
        ".lex.50.50.deen.s2t.bin.sha256": hashlib.sha256(b"l").hexdigest().encode(),
    }
    mirror.asked.clear()
    assert pull(listing, cache, quick_downloader(waits), on_wait=lambda: None) == folder
    assert mirror.asked == []


@pytest.mark.parametrize("damage", [b"", b"w", b"vv"])
def test_a_vocabulary_that_was_damaged_in_the_cache_comes_again(
    firefox: Firefox, mirror: Mirror, cache: Cache, waits: Waits, damage: bytes
) -> None:
    listing = firefox.find(FirefoxName(source="de", target="en"))
    folder = pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    (folder / "vocab.deen.spm").write_bytes(damage)
    mirror.asked.clear()
    pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    assert (folder / "vocab.deen.spm").read_bytes() == b"v"
    assert [one.path.rpartition("/")[2] for one in mirror.asked] == ["vocab.deen.spm.gz"]


def test_other_bytes_are_refused(
    firefox: Firefox, mirror: Mirror, cache: Cache, waits: Waits
) -> None:
    mirror.files["/models/de-en/base-memory/exported/model.deen.intgemm.alphas.bin.gz"] = (
        gzip.compress(MODEL[:-1] + b"!")
    )
    listing = firefox.find(FirefoxName(source="de", target="en"))
    with pytest.raises(RegistryError, match="sha256"):
        pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    assert [
        path.name
        for path in cache.model_folder(listing.name, listing.version, listing.folder).iterdir()
    ] == []


def test_two_vocabularies_and_scripts_are_known(firefox: Firefox) -> None:
    listing = firefox.find(FirefoxName(source="en", target="zh-Hant"))
    assert {file.path for file in listing.files} == {
        "model.enzh_hant.intgemm.alphas.bin",
        "srcvocab.enzh_hant.spm",
        "trgvocab.enzh_hant.spm",
    }
    assert listing.pairs == (("en", "zh-Hant"),)


@pytest.mark.parametrize("key", ["zh_hant-en", "zh-Hant-en", "zh_hans-en", "zh-en"])
def test_a_script_is_known_on_either_side(firefox: Firefox, mirror: Mirror, key: str) -> None:
    source = "zh-Hant" if "ant" in key else "zh-Hans"
    mirror.put_firefox_model(key, TINY, model=b"m", vocab=b"v")
    assert firefox.find(FirefoxName(source=source, target="en")).pairs == ((source, "en"),)
    (offer,) = firefox.offers(source, "en")
    assert firefox.find(named(offer.name)).version == firefox.find(named(f"firefox:{key}")).version


def named(text: str) -> FirefoxName:
    name = parse_name(text)
    assert isinstance(name, FirefoxName)
    return name


@pytest.mark.parametrize("target", ["zh", "zh-Hans"])
def test_chinese_alone_is_simplified_as_in_the_checkpoint(
    firefox: Firefox, mirror: Mirror, target: str
) -> None:
    mirror.put_firefox_model("en-zh", TINY, model=b"m", vocab=b"v")
    assert firefox.find(FirefoxName(source="en", target=target)).pairs == (("en", "zh-Hans"),)
    (offer,) = firefox.offers("en", target)
    assert (offer.name, offer.pairs) == ("firefox:en-zh/tiny", (("en", "zh-Hans"),))


def test_what_is_not_there_is_told_with_what_is(firefox: Firefox) -> None:
    with pytest.raises(RegistryError, match=r"models\.json: has no fr-en"):
        firefox.find(FirefoxName(source="fr", target="en"))
    with pytest.raises(RegistryError, match=r"no released model firefox:de-en/huge; .*tiny"):
        firefox.find(FirefoxName(source="de", target="en", architecture="huge"))


def test_offers_are_the_released_ones_the_best_first(firefox: Firefox) -> None:
    offers = firefox.offers("de", "en")
    assert [one.name for one in offers] == ["firefox:de-en/base-memory", "firefox:de-en/tiny"]
    assert (offers[0].size, offers[0].licence) == (len(MODEL), "MPL-2.0")
    assert offers[0].score is not None
    assert offers[0].score.value == 0.883
    assert firefox.offers("en", "de") == ()


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"model": {"path": "../../evil"}, "vocab": {"path": "v"}}, "leaves the folder"),
        ({"model": {"path": "/etc/passwd"}, "vocab": {"path": "v"}}, "leaves the folder"),
        ({"model": {"path": "https://evil/x"}, "vocab": {"path": "v"}}, "path is"),
        ({"model": {"path": "a/v"}, "vocab": {"path": "b/v"}}, "twice"),
        ({"model": {"path": "m"}}, "no model with its vocabulary"),
        ({"vocab": {"path": "v"}}, "no model with its vocabulary"),
        ({"model": {"path": "m"}, "srcVocab": {"path": "v"}}, "no model with its vocabulary"),
        ({"model": {}, "vocab": {"path": "v"}}, "path is missing"),
        (
            {"model": {"path": "m", "uncompressedSize": 2**40}, "vocab": {"path": "v"}},
            "at most",
        ),
        ({"model": {"path": "m", "uncompressedHash": "x"}, "vocab": {"path": "v"}}, "checksum"),
        ("none", "files is 'none'"),
    ],
)
def test_hostile_records_are_refused(
    mirror: Mirror, cache: Cache, waits: Waits, files: object, problem: str
) -> None:
    if isinstance(files, dict) and "model" in files:
        files["model"] = {"uncompressedHash": "0" * 64, **files["model"]}
    mirror.put_json(INDEX, {"models": {"de-en": [{**TINY, "files": files}]}})
    with pytest.raises(RegistryError, match=problem):
        Firefox(mirror.url, quick_documents(cache, waits)).find(
            FirefoxName(source="de", target="en")
        )
    assert [one.path for one in mirror.asked] == [INDEX]


@pytest.mark.parametrize("index", [[], {}, {"models": []}, {"models": {"de-en": "x"}}])
def test_other_indexes_are_one_error(
    mirror: Mirror, cache: Cache, waits: Waits, index: object
) -> None:
    mirror.files[INDEX] = json.dumps(index).encode()
    with pytest.raises(RegistryError, match=r"models\.json"):
        Firefox(mirror.url, quick_documents(cache, waits)).find(
            FirefoxName(source="de", target="en")
        )


def test_scores_beyond_all_numbers_are_left_out(mirror: Mirror, cache: Cache, waits: Waits) -> None:
    metrics = {"flores": {"bleu": 10**400, "chrf": True, "comet22": 0.5}}
    mirror.put_json(INDEX, {"models": {"de-en": [{**TINY, "metrics": metrics}]}})
    (offer,) = Firefox(mirror.url, quick_documents(cache, waits)).offers("de", "en")
    assert offer.score is not None
    assert (offer.score.metric, offer.score.value) == ("COMET-22", 0.5)
