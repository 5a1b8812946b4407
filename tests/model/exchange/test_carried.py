import json
from dataclasses import replace
from pathlib import Path

import pytest

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.manifest import Manifest
from model.config import LengthLimits
from model.exchange.carried import carried_value, read_carried, write_carried
from model.text.languages.tags import Language, all_pairs
from support.tiny_checkpoint import write_tiny_checkpoint

LIMITS = {"max_source_length": 40, "max_target_length": 30}
EN_DE = {"source": "en", "target": "de"}
NO_TAG = r"'e\n' is not a well-formed language tag such as 'en', 'zh-Hans' or 'pt-BR'"


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    return read_manifest(write_tiny_checkpoint(tmp_path / "checkpoint"))


def read(folder: Path, value: object) -> tuple[object, list[str]]:
    (folder / "dragoman.json").write_text(json.dumps(value))
    return read_carried(folder)


def problems(folder: Path, value: object) -> list[str]:
    carried, found = read(folder, value)
    assert carried == read_carried(folder / "nothing")[0]
    return found


def test_what_is_written_is_read_from_either_place(manifest: Manifest, tmp_path: Path) -> None:
    own, config = tmp_path / "own", tmp_path / "config"
    own.mkdir()
    config.mkdir()
    write_carried(own, manifest)
    stated = {"model_type": "marian", "dragoman": carried_value(manifest)}
    (config / "config.json").write_text(json.dumps(stated))
    for folder in (own, config):
        carried, found = read_carried(folder)
        assert found == []
        assert (carried.limits, carried.licence) == (manifest.limits, manifest.licence)
        assert carried.licences == manifest.licences != ()
        assert carried.tags == tuple((pair.source, pair.target) for pair in manifest.pairs)


def test_languages_that_are_all_translated_into_each_other_are_the_vocabularys(
    manifest: Manifest,
) -> None:
    languages = (Language(tag="en"), Language(tag="de"))
    whole = replace(manifest, languages=languages, pairs=all_pairs(languages))
    assert "pairs" not in carried_value(whole)


@pytest.mark.parametrize(
    "config", [None, "", "{", "[]", '{"model_type": "marian"}', '{"dragoman": {}}', "[" * 100_000]
)
def test_a_folder_that_says_nothing_carries_nothing(tmp_path: Path, config: str | None) -> None:
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    carried, found = read_carried(tmp_path)
    assert (carried.limits, carried.pairs, carried.licence, carried.licences) == (
        None,
        (),
        None,
        (),
    )
    assert found == []


def test_what_a_later_version_adds_is_left_out(tmp_path: Path) -> None:
    carried, found = read(tmp_path, {"limits": LIMITS, "quality": [1]})
    assert found == []
    assert getattr(carried, "limits") == LengthLimits(**LIMITS)  # noqa: B009  # an object to mypy


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (3, "dragoman.json is 3; it must be a mapping"),
        ({"limits": [1]}, "dragoman.json: limits is [1]; it must be a mapping"),
        (
            {"limits": {**LIMITS, "max_source_length": "40"}},
            "dragoman.json: limits.max_source_length is '40'; it must be an integer",
        ),
        (
            {"limits": {**LIMITS, "max_source_length": True}},
            "dragoman.json: limits.max_source_length is True; it must be an integer",
        ),
        (
            {"limits": {"max_source_length": 40}},
            "dragoman.json: limits.max_target_length is missing",
        ),
        (
            {"limits": {**LIMITS, "max_target_length": 0}},
            "dragoman.json: limits.max_target_length is 0; it must be from 1 to 131072",
        ),
        (
            {"limits": {**LIMITS, "max_target_length": 131073}},
            "dragoman.json: limits.max_target_length is 131073; it must be from 1 to 131072",
        ),
        ({"pairs": "en:de"}, "dragoman.json: pairs is 'en:de'; it must be a list"),
        (
            {"pairs": [{"source": "en", "target": 3}]},
            "dragoman.json: pairs[0].target is 3; it must be a string",
        ),
        (
            {"pairs": [EN_DE, {"source": "EN", "target": "de"}]},
            "dragoman.json: pairs has the language 'EN'; it must be 'en'",
        ),
        (
            {"pairs": [{"source": "e\n", "target": "de"}]},
            f"dragoman.json: pairs: {NO_TAG}",
        ),
        (
            {"pairs": [EN_DE] * 65537},
            "dragoman.json: pairs has 65537 entries; at most 65536 are read",
        ),
        (
            {"pairs": [{"source": "en", "target": f"a{n:07d}"} for n in range(600)]},
            "dragoman.json: pairs has 601 languages; at most 512 are read",
        ),
        ({"licence": 3}, "dragoman.json: licence is 3; it must be a string"),
        ({"licences": [{}]}, "dragoman.json: licences[0].corpus is missing"),
    ],
)
def test_what_is_wrong_is_told_in_a_line_each(tmp_path: Path, value: object, problem: str) -> None:
    assert problem in problems(tmp_path, value)


def test_huge_numbers_and_damaged_files_are_one_short_line(tmp_path: Path) -> None:
    huge = {**LIMITS, "max_source_length": 10**500}
    (line,) = problems(tmp_path, {"limits": huge})
    assert len(line) < 300
    for data in (b"", b"{", b"\xff", b'{"limits": NaN}', b"[" * 100_000):
        (tmp_path / "dragoman.json").write_bytes(data)
        (line,) = read_carried(tmp_path)[1]
        assert line.startswith("dragoman.json not")


def test_limits_beyond_the_position_table_are_refused(tmp_path: Path) -> None:
    config = {"max_position_embeddings": 39, "dragoman": {"limits": LIMITS}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_carried(tmp_path)[1] == [
        "config.json: dragoman.limits.max_source_length is 40; max_position_embeddings is 39"
    ]
