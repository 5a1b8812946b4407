"""Repositories of the hub, from a mirror in its layout."""

import hashlib
from pathlib import Path

import pytest

from model.errors import RegistryError
from model.exchange.registry.cache import Cache
from model.exchange.registry.hub import Hub
from model.exchange.registry.hub_files import needed_files
from model.exchange.registry.names import HubName
from model.exchange.registry.pulling import pull
from support.registry_mirror import (
    COMMIT,
    Fault,
    Mirror,
    Waits,
    quick_documents,
    quick_downloader,
)

REPOSITORY = "Helsinki-NLP/opus-mt-en-de"
API = f"/api/models/{REPOSITORY}/revision/main"
FILES = {
    ".gitattributes": b"*.bin lfs",
    "README.md": b"# opus-mt-en-de",
    "config.json": b"{}",
    "generation_config.json": b"{}",
    "pytorch_model.bin": b"pickle" * 100,
    "model.safetensors": b"safe" * 10_000,
    "rust_model.ot": b"rust",
    "tf_model.h5": b"tf",
    "flax_model.msgpack": b"flax",
    "source.spm": b"source",
    "target.spm": b"target",
    "tokenizer_config.json": b"{}",
    "vocab.json": b"{}",
    "onnx/model.onnx": b"onnx",
}
NEEDED = [
    "README.md",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "source.spm",
    "target.spm",
    "tokenizer_config.json",
    "vocab.json",
]
CARD = {
    "language": ["en", "de"],
    "license": "cc-by-4.0",
    "model-index": [
        {
            "name": "opus-mt-en-de",
            "results": [
                {
                    "task": {"name": "Translation eng-deu", "type": "translation"},
                    "dataset": {"name": "newstest2019", "type": "newstest2019"},
                    "metrics": [{"name": "BLEU", "type": "bleu", "value": 40.9}],
                }
            ],
        }
    ],
}


@pytest.fixture
def hub(mirror: Mirror, cache: Cache, waits: Waits) -> Hub:
    mirror.put_hub_repository(REPOSITORY, FILES, card=CARD)
    return Hub(mirror.url, quick_documents(cache, waits))


def test_a_listing_says_what_a_person_decides_by(hub: Hub) -> None:
    listing = hub.find(HubName(repository=REPOSITORY))
    assert (listing.name, listing.folder) == (f"hf:{REPOSITORY}", "opus-mt-en-de")
    assert (listing.version, listing.licence) == (COMMIT, "CC-BY-4.0")
    assert (listing.pairs, listing.languages) == ((("en", "de"),), ("en", "de"))
    assert [(one.metric, one.value, one.test_set, one.pair) for one in listing.scores] == [
        ("BLEU", 40.9, "newstest2019", "eng-deu")
    ]
    assert listing.known_bytes == sum(len(FILES[name]) for name in NEEDED)


def test_scores_beyond_all_numbers_are_left_out(mirror: Mirror, cache: Cache, waits: Waits) -> None:
    metrics = [{"name": "BLEU", "value": value} for value in (10**400, -(10**400), True, "1", 3)]
    card = {**CARD, "model-index": [{"results": [{"metrics": metrics}]}]}
    mirror.put_hub_repository(REPOSITORY, FILES, card=card)
    listing = Hub(mirror.url, quick_documents(cache, waits)).find(HubName(repository=REPOSITORY))
    assert [one.value for one in listing.scores] == [3.0]


def test_what_a_conversion_needs_is_downloaded_from_the_commit_and_verified(
    hub: Hub, mirror: Mirror, cache: Cache, waits: Waits
) -> None:
    listing = hub.find(HubName(repository=REPOSITORY))
    folder = pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        name: FILES[name] for name in NEEDED
    }
    assert [one.path for one in mirror.asked[1:]] == [
        f"/{REPOSITORY}/resolve/{COMMIT}/{name}" for name in NEEDED
    ]


def test_the_second_pull_downloads_nothing(mirror: Mirror, cache: Cache, waits: Waits) -> None:
    mirror.put_hub_repository(REPOSITORY, FILES, card=CARD)
    for _ in range(2):
        mirror.asked.clear()
        hub = Hub(mirror.url, quick_documents(cache, waits))
        listing = hub.find(HubName(repository=REPOSITORY))
        pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    assert [(one.path, one.num_bytes) for one in mirror.asked] == [(API, 0)]  # not modified


def test_of_files_that_are_listed_by_name_alone_the_headers_tell(
    mirror: Mirror, other_mirror: Mirror, cache: Cache, waits: Waits
) -> None:
    names: list[dict[str, object]] = [{"rfilename": name} for name in FILES]
    mirror.put_hub_repository(REPOSITORY, FILES, siblings=names)
    place = f"/{REPOSITORY}/resolve/{COMMIT}/model.safetensors"
    weights = FILES["model.safetensors"]
    headers = {
        "Location": f"{other_mirror.url}/cdn",
        "X-Linked-Size": str(len(weights)),
        "X-Linked-Etag": f'"{hashlib.sha256(weights).hexdigest()}"',
        "ETag": f'"{COMMIT}"',
        "X-Repo-Commit": COMMIT,
    }
    mirror.always[place] = Fault(status=302, headers=headers)
    other_mirror.files["/cdn"] = weights
    listing = Hub(mirror.url, quick_documents(cache, waits)).find(HubName(repository=REPOSITORY))
    assert listing.known_bytes == sum(len(FILES[name]) for name in NEEDED)
    pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    other_mirror.files["/cdn"] = weights[:-1] + b"!"
    (cache.model_folder(listing.name, COMMIT, listing.folder) / "model.safetensors").unlink()
    with pytest.raises(RegistryError, match="sha256"):
        pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"X-Repo-Commit": "1" * 40}, "is of commit"),
        ({"ETag": "none"}, "neither in its listing nor in its headers"),
    ],
)
def test_headers_that_tell_nothing_are_an_error(
    mirror: Mirror, cache: Cache, waits: Waits, headers: dict[str, str], problem: str
) -> None:
    mirror.put_hub_repository(
        "a/b", {"model.safetensors": b"x"}, siblings=[{"rfilename": "model.safetensors"}]
    )
    mirror.always[f"/a/b/resolve/{COMMIT}/model.safetensors"] = Fault(headers=headers)
    with pytest.raises(RegistryError, match=problem):
        Hub(mirror.url, quick_documents(cache, waits)).find(HubName(repository="a/b"))


def test_files_on_another_host_come_by_its_redirect(
    hub: Hub, mirror: Mirror, other_mirror: Mirror, cache: Cache, waits: Waits
) -> None:
    place = f"/{REPOSITORY}/resolve/{COMMIT}/model.safetensors"
    other_mirror.files["/cdn"] = FILES["model.safetensors"]
    mirror.always[place] = Fault(
        status=302, headers={"Location": f"{other_mirror.url}/cdn", "X-Repo-Commit": COMMIT}
    )
    listing = hub.find(HubName(repository=REPOSITORY))
    folder = pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert other_mirror.bodies_of("/cdn") == [len(FILES["model.safetensors"])]


def test_a_revision_is_asked_for_and_quoted(mirror: Mirror, cache: Cache, waits: Waits) -> None:
    mirror.put_hub_repository("a/b", {"model.safetensors": b"x"}, revision="v1.0")
    hub = Hub(mirror.url + "/", quick_documents(cache, waits))
    assert hub.find(HubName(repository="a/b", revision="v1.0")).name == "hf:a/b@v1.0"


def test_a_repository_that_is_not_there_is_told(hub: Hub) -> None:
    with pytest.raises(RegistryError, match=r"a/none/revision/main\?blobs=true: is not there"):
        hub.find(HubName(repository="a/none"))


@pytest.mark.parametrize(("status", "problem"), [(401, "set HF_TOKEN"), (403, "accept its terms")])
def test_a_repository_that_is_closed_says_what_opens_it(
    hub: Hub, mirror: Mirror, status: int, problem: str
) -> None:
    mirror.always[API] = Fault(status=status)
    with pytest.raises(RegistryError, match=problem):
        hub.find(HubName(repository=REPOSITORY))


@pytest.mark.parametrize(
    ("sibling", "problem"),
    [
        ({"rfilename": "../evil.json", "size": 1}, "leaves the folder"),
        ({"rfilename": "a/../../evil.json", "size": 1}, "leaves the folder"),
        ({"rfilename": "/etc/evil.json", "size": 1}, "leaves the folder"),
        ({"rfilename": "..\\evil.json", "size": 1}, "leaves the folder"),
        ({"rfilename": "e\u202evil.json", "size": 1}, "has signs"),
        ({"rfilename": "vocab.json", "size": -1}, "size is -1"),
        ({"rfilename": "vocab.json", "size": 2**60}, "at most"),
        ({"rfilename": "vocab.json", "size": True}, "size is True"),
        ({"rfilename": "vocab.json", "size": 1, "blobId": "x"}, "no git-sha1 checksum"),
        ({"rfilename": "vocab.json", "size": 1, "lfs": {"sha256": "x"}}, "no sha256 checksum"),
        ({"size": 1}, "rfilename is missing"),
    ],
)
def test_hostile_listings_are_refused_before_anything_is_downloaded(
    mirror: Mirror, cache: Cache, waits: Waits, sibling: dict[str, object], problem: str
) -> None:
    good: dict[str, object] = {"rfilename": "model.safetensors", "size": 1}
    mirror.put_hub_repository("a/b", {}, siblings=[good, sibling])
    with pytest.raises(RegistryError, match=problem):
        Hub(mirror.url, quick_documents(cache, waits)).find(HubName(repository="a/b"))
    assert len(mirror.asked) == 1


@pytest.mark.parametrize(
    "answer", [b"[]", b"{}", b'{"sha": "main"}', b"<html>", b"", b"\xff", b"[" * 100_000]
)
def test_other_answers_are_one_error(
    mirror: Mirror, cache: Cache, waits: Waits, answer: bytes
) -> None:
    mirror.files["/api/models/a/b/revision/main"] = answer
    with pytest.raises(RegistryError, match="/api/models/a/b/revision/main"):
        Hub(mirror.url, quick_documents(cache, waits)).find(HubName(repository="a/b"))


def test_a_folder_stands_for_the_hub(
    mirror: Mirror, cache: Cache, waits: Waits, tmp_path: Path
) -> None:
    mirror.put_hub_repository(REPOSITORY, FILES, card=CARD)
    for path, data in mirror.files.items():
        target = tmp_path / "folder" / path[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    hub = Hub((tmp_path / "folder").as_uri(), quick_documents(cache, waits))
    listing = hub.find(HubName(repository=REPOSITORY))
    folder = pull(listing, cache, quick_downloader(waits), on_wait=lambda: None)
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert mirror.asked == []


def test_offers_are_models_of_the_direction(hub: Hub, mirror: Mirror) -> None:
    mirror.put_json(
        "/api/models",
        [
            {"id": REPOSITORY, "downloads": 9, "tags": ["translation", "license:cc-by-4.0"]},
            {"id": "Helsinki-NLP/opus-mt-de-en", "downloads": 8, "tags": []},
            {"id": "facebook/nllb-200-distilled-600M", "tags": ["license:cc-by-nc-4.0"]},
            {"id": "without-owner"},
            "nonsense",
        ],
    )
    offers = hub.offers("en", "de")
    assert [(one.name, one.pairs, one.licence, one.note) for one in offers] == [
        (f"hf:{REPOSITORY}", (("en", "de"),), "CC-BY-4.0", "9 downloads"),
        ("hf:facebook/nllb-200-distilled-600M", (), "CC-BY-NC-4.0", ""),
    ]


@pytest.mark.parametrize(
    ("names", "needed"),
    [
        (["config.json", "pytorch_model.bin"], ["config.json", "pytorch_model.bin"]),
        (
            [
                "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors",
                "model.safetensors.index.json",
                "pytorch_model.bin.index.json",
                "pytorch_model-00001-of-00001.bin",
            ],
            [
                "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors",
                "model.safetensors.index.json",
            ],
        ),
        (
            ["model.safetensors", "model.fp16.safetensors", "training_args.bin"],
            ["model.safetensors"],
        ),
        (
            ["model.bin", "config.json", "shared_vocabulary.json"],
            ["model.bin", "config.json", "shared_vocabulary.json"],
        ),
        (["opus-2020-02-26.zip", "README.md"], ["opus-2020-02-26.zip", "README.md"]),
        (["a.zip", "b.zip"], []),
        (["README.md", "config.json"], []),
        (["merges.txt", "vocab-src.json", "pytorch_model.bin"],) * 2,
        (
            ["tokenization_small100.py", "modeling.py", "pytorch_model.bin"],
            ["tokenization_small100.py", "pytorch_model.bin"],
        ),
    ],
)
def test_the_needed_files_are_of_one_form(names: list[str], needed: list[str]) -> None:
    assert needed_files(names) == needed
