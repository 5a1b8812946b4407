"""Where the registries are, and who is told the token."""

from pathlib import Path

import pytest

from model.errors import ConfigError
from model.exchange.registry.cache import Cache
from model.exchange.registry.names import LocalName, parse_name
from model.exchange.registry.sources import VARIABLES, sources_of
from support.registry_mirror import Mirror, Waits, quick_retries


def _all_at(url: str) -> dict[str, str]:
    return dict.fromkeys(VARIABLES, url)


def test_every_kind_of_name_asks_its_registry(mirror: Mirror, cache: Cache, waits: Waits) -> None:
    mirror.put_hub_repository("a/b", {"model.safetensors": b"x"})
    mirror.put_firefox_model(
        "de-en", {"architecture": "tiny", "releaseStatus": "Release"}, model=b"m", vocab=b"v"
    )
    mirror.put_argos_package("en", "de", b"p", version="1.0")
    mirror.files["/en-de/x.zip"] = b"z"
    sources = sources_of(_all_at(mirror.url), cache, quick_retries(waits))
    found = [
        sources.find(parse_name(name)).registry
        for name in (
            "hf:a/b",
            "firefox:de-en",
            "argos:en-de",
            "opus:en-de/x.zip",
            f"{mirror.url}/en-de/x.zip",
        )
    ]
    assert found == [
        "Hugging Face",
        "Firefox Translations",
        "Argos Translate",
        "OPUS-MT",
        "127.0.0.1",
    ]


def test_a_path_has_no_registry(cache: Cache, waits: Waits) -> None:
    sources = sources_of({}, cache, quick_retries(waits))
    with pytest.raises(ConfigError, match="is here already"):
        sources.find(LocalName(path=Path("/x")))


def test_the_token_is_told_to_the_hub_alone(
    mirror: Mirror, other_mirror: Mirror, cache: Cache, waits: Waits
) -> None:
    mirror.put_hub_repository("a/b", {"model.safetensors": b"x"})
    other_mirror.put_argos_package("en", "de", b"p", version="1.0")
    environment = {**_all_at(other_mirror.url), "DRAGOMAN_HUB_URL": mirror.url, "HF_TOKEN": "hf_x"}
    sources = sources_of(environment, cache, quick_retries(waits))
    sources.find(parse_name("hf:a/b"))
    sources.find(parse_name("argos:en-de"))
    assert {one.headers.get("authorization") for one in mirror.asked} == {"Bearer hf_x"}
    assert {one.headers.get("authorization") for one in other_mirror.asked} == {None}
    kept = [path.read_bytes() for path in cache.root.rglob("*") if path.is_file()]
    assert not any(b"hf_x" in data for data in kept)


@pytest.mark.parametrize("token", ["a b", "a\nb", "ä"])
def test_a_token_that_is_none_is_told_and_not_shown(cache: Cache, waits: Waits, token: str) -> None:
    with pytest.raises(ConfigError, match="HF_TOKEN has signs") as caught:
        sources_of({"HF_TOKEN": token}, cache, quick_retries(waits))
    assert token not in str(caught.value)


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize(
    "value", ["hub", "ftp://a", "http://", "https://a:b@c", "https://a?x", "file:x", "http://[a"]
)
def test_an_address_that_is_none_is_told(
    cache: Cache, waits: Waits, variable: str, value: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        sources_of({variable: value}, cache, quick_retries(waits))
    assert variable in str(caught.value)
    assert "a:b" not in str(caught.value)


def test_a_folder_is_an_address(cache: Cache, waits: Waits, tmp_path: Path) -> None:
    (tmp_path / "en-de").mkdir()
    (tmp_path / "en-de/x.zip").write_bytes(b"z")
    sources = sources_of({"DRAGOMAN_OPUS_URL": str(tmp_path)}, cache, quick_retries(waits))
    assert sources.find(parse_name("opus:en-de/x.zip")).known_bytes == 1
