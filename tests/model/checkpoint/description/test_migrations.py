"""Older files mean what they meant, and the format can grow without touching one of them."""

import copy
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from model.checkpoint.description.config_file import (
    format_config,
    format_manifest,
    parse_config,
    read_manifest,
)
from model.checkpoint.description.migrations import (
    NEWEST_SCHEMA,
    SCHEMA_1_KEYS,
    key_problems,
    migrate,
)
from model.checkpoint.manifest import CONFIG_FILE, Manifest
from model.config import ModelConfig
from model.conversion import ConversionError
from support.tiny_checkpoint import write_tiny_checkpoint

Json = dict[str, Any]

BUNDLED = sorted((Path(__file__).parents[4] / "checkpoints").iterdir())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    directory = write_tiny_checkpoint(tmp_path_factory.mktemp("migrations") / "tiny")
    return (directory / CONFIG_FILE).read_bytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class LargerNetwork(ModelConfig):
    """A network with a layer that schema 1 knows nothing of."""

    num_shared_layers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LargerManifest(Manifest):
    """A description with two new fields."""

    network: LargerNetwork
    glossary: str | None = None


def with_keys(data: bytes, **changes: object) -> bytes:
    return json.dumps({**json.loads(data), **changes}).encode()


def problems_of(data: bytes, kind: type[Manifest] = Manifest) -> list[str]:
    with pytest.raises(ConversionError) as caught:
        parse_config(data, kind)
    return sorted(map(str, caught.value.problems))


def test_schema_1_becomes_schema_2_with_every_value_it_had(data: bytes) -> None:
    before = json.loads(data)
    kept = copy.deepcopy(before)
    after = migrate(before)
    assert before == kept
    assert after["schema_version"] == NEWEST_SCHEMA == 2
    assert {**after, "schema_version": 1} == before
    assert migrate(after) == after


@pytest.mark.parametrize("directory", BUNDLED, ids=lambda path: str(path.name))
def test_a_bundled_checkpoint_is_read_and_written_back_byte_for_byte(directory: Path) -> None:
    data = (directory / CONFIG_FILE).read_bytes()
    assert json.loads(data)["schema_version"] == 1
    assert format_manifest(read_manifest(directory)) == data


def test_the_same_description_in_schema_2_is_the_same(data: bytes) -> None:
    assert parse_config(with_keys(data, schema_version=2), Manifest) == parse_config(data, Manifest)


def key_places(config: Json) -> list[tuple[Json, str, str]]:
    """Every key of schema 1 with its object and its place, of lists and mappings the first item."""
    tensor = next(iter(config["tensors"]))
    objects = {
        "": config,
        "network": config["network"],
        "tokens": config["tokens"],
        "pairs[0]": config["pairs"][0],
        "limits": config["limits"],
        "licences[0]": config["licences"][0],
        f"tensors.{tensor}": config["tensors"][tensor],
        "files": config["files"],
    }
    assert len(objects) == len(SCHEMA_1_KEYS)
    return [
        (found, key, f"{place}.{key}" if place else key)
        for place, found in objects.items()
        for key in list(found)
        if key != "schema_version"
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_no_key_of_schema_1_can_be_left_out_whatever_its_default(data: bytes, version: int) -> None:
    config = {**json.loads(data), "schema_version": version}
    places = key_places(config)
    assert len(places) == sum(map(len, SCHEMA_1_KEYS.values())) - 1
    for found, key, place in places:
        value = found.pop(key)
        assert problems_of(json.dumps(config).encode()) == [f"{place} is missing"]
        found[key] = value


@pytest.mark.parametrize("version", [1, 2])
def test_an_unknown_key_is_refused_by_name_wherever_it_stands(data: bytes, version: int) -> None:
    config = {**json.loads(data), "schema_version": version}
    objects = {id(found): (found, place) for found, _, place in key_places(config)}
    for found, place in objects.values():
        found["colour"] = 1
        colour = f"{place.rpartition('.')[0]}.colour".removeprefix(".")
        assert problems_of(json.dumps(config).encode()) == [f"{colour} is unknown"]
        del found["colour"]


def test_a_new_field_with_a_default_leaves_old_files_as_they_are(data: bytes) -> None:
    old, new = parse_config(data, Manifest), parse_config(data, LargerManifest)
    assert (new.glossary, new.network.num_shared_layers) == (None, 0)
    described = asdict(new)
    assert described.pop("glossary") is None
    assert described["network"].pop("num_shared_layers") == 0
    assert described == asdict(old)
    assert format_config(new) == data


def test_a_new_field_is_read_back_from_schema_2(data: bytes) -> None:
    config = {**json.loads(data), "schema_version": 2, "glossary": "terms.tsv"}
    config["network"]["num_shared_layers"] = 3
    new = parse_config(json.dumps(config).encode(), LargerManifest)
    assert (new.glossary, new.network.num_shared_layers) == ("terms.tsv", 3)
    written = format_config(new)
    assert json.loads(written) == config
    assert parse_config(written, LargerManifest) == new


def test_only_what_is_not_at_its_default_is_written(data: bytes) -> None:
    new = parse_config(with_keys(data, schema_version=2, glossary="terms.tsv"), LargerManifest)
    written = json.loads(format_config(new))
    assert (written["schema_version"], written["glossary"]) == (2, "terms.tsv")
    assert "num_shared_layers" not in written["network"]


def test_a_new_field_is_unknown_to_schema_1_and_to_who_does_not_have_it(data: bytes) -> None:
    as_1 = with_keys(data, glossary="terms.tsv")
    as_2 = with_keys(data, glossary="terms.tsv", schema_version=2)
    assert problems_of(as_1, LargerManifest) == ["glossary is unknown"]
    assert problems_of(as_2) == ["glossary is unknown"]


def test_a_new_field_of_the_wrong_type_is_named(data: bytes) -> None:
    wrong = with_keys(data, schema_version=2, glossary=3)
    assert problems_of(wrong, LargerManifest) == ["glossary is 3; it must be a string"]


def test_objects_that_are_none_have_no_keys_to_miss() -> None:
    config: dict[str, object] = dict.fromkeys(SCHEMA_1_KEYS[""], 3)
    assert key_problems({**config, "schema_version": 1}) == []
