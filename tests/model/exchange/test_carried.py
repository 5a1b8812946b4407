import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.manifest import Manifest
from model.config import LengthLimits
from model.exchange.carried import Carried, carried_value, read_carried, write_carried
from model.text.languages.tags import Language, all_pairs
from support.tiny_checkpoint import write_tiny_checkpoint

LIMITS = {"max_source_length": 40, "max_target_length": 30}
EN_DE = {"source": "en", "target": "de"}
BOTH = "pairs and languages are both given; languages stand for all their pairs"
NO_TAG = r"'e\n' is not a well-formed language tag such as 'en', 'zh-Hans' or 'pt-BR'"


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    return read_manifest(write_tiny_checkpoint(tmp_path / "checkpoint"))


def read(folder: Path, value: dict[str, object]) -> tuple[object, list[str]]:
    (folder / "dragoman.json").write_text(json.dumps({"format": 1, **value}))
    return read_carried(folder)


def problems(folder: Path, value: dict[str, object]) -> list[str]:
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
        assert carried.directions == manifest.pairs != ()


def test_what_asks_for_each_direction_is_carried_along(manifest: Manifest, tmp_path: Path) -> None:
    languages = (
        Language(tag="en", source_prefix=("[EN]",), target_prefix=("en",)),
        Language(tag="de", wanted_prefix=("2de",), wanted_prompt=("to", "German")),
    )
    whole = replace(manifest, languages=languages, pairs=all_pairs(languages))
    some = replace(manifest, pairs=whole.pairs[:1])
    for kept in (whole, some):
        write_carried(tmp_path, kept)
        carried, found = read_carried(tmp_path)
        assert (carried.directions, carried.languages, found) == (kept.pairs, kept.languages, [])


@pytest.mark.parametrize(
    "config",
    [
        None,
        "",
        "{",
        "[]",
        '{"model_type": "marian"}',
        '{"dragoman": {}}',
        '{"dragoman": null}',
        '{"dragoman": true}',
        '{"dragoman": "me/dragoman-model"}',
        '{"dragoman": {"limits": 3}}',
        '{"dragoman": {"format": "GGUF", "limits": 3}}',
        '{"dragoman": {"format": true, "limits": 3}}',
        "[" * 100_000,
    ],
)
def test_a_folder_that_says_nothing_carries_nothing(tmp_path: Path, config: str | None) -> None:
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    carried, found = read_carried(tmp_path)
    assert carried == Carried()
    assert carried.licences is None
    assert found == []


def test_a_file_of_the_same_name_without_the_mark_says_nothing(tmp_path: Path) -> None:
    for text in ("3", "[]", '{"licence": 3}'):
        (tmp_path / "dragoman.json").write_text(text)
        assert read_carried(tmp_path) == read_carried(tmp_path / "nothing")


def test_a_later_form_is_refused(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, {"format": 2, "limits": 3})
    assert problem == "dragoman.json: format is 2; only 1 is read"


def test_what_a_later_version_adds_is_left_out(tmp_path: Path) -> None:
    carried, found = read(tmp_path, {"limits": LIMITS, "quality": [1]})
    assert found == []
    assert getattr(carried, "limits") == LengthLimits(**LIMITS)  # noqa: B009  # an object to mypy


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"languages": [3]}, "dragoman.json: languages[0] is 3; it must be a mapping"),
        (
            {"pairs": [{**EN_DE, "source_prefix": "[DE]"}]},
            "dragoman.json: pairs[0].source_prefix is '[DE]'; it must be a list",
        ),
        (
            {"pairs": [{**EN_DE, "target_prefix": ["a"] * 257}]},
            "dragoman.json: pairs[0].target_prefix has 257 entries; at most 256 are read",
        ),
        ({"pairs": [EN_DE] * 2}, "dragoman.json: pairs has en → de 2 times"),
        ({"languages": [{"tag": "en"}] * 2}, "dragoman.json: languages has en 2 times"),
        (
            {"languages": [{"tag": "EN"}]},
            "dragoman.json: languages[0].tag is 'EN'; it must be 'en'",
        ),
        (
            {"languages": [{"tag": "en"}], "pairs": [EN_DE]},
            f"dragoman.json: {BOTH}",
        ),
        (
            {"licences": [{"corpus": "a", "licence": "x\n"}]},
            "dragoman.json: licences[0].licence is 'x\\n'; it must have no control characters",
        ),
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
            "dragoman.json: pairs[1].source is 'EN'; it must be 'en'",
        ),
        (
            {"pairs": [{"source": "e\n", "target": "de"}]},
            f"dragoman.json: pairs[0].source: {NO_TAG}",
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
def test_what_is_wrong_is_told_in_a_line_each(
    tmp_path: Path, value: dict[str, object], problem: str
) -> None:
    assert problem in problems(tmp_path, value)


@pytest.mark.parametrize(
    ("value", "num_lines"),
    [
        ({"pairs": [0] * 400_000}, 1),
        ({"licences": [0] * 400_000}, 1),
        ({"pairs": [0] * 60_000}, 21),
        ({"licences": [{"corpus": "\n", "licence": ""}] * 4_000}, 21),
        ({"pairs": [dict.fromkeys(map(str, range(100_000)))]}, 1),
        ({"limits": dict.fromkeys(map(str, range(100_000)))}, 1),
        ({"languages": [{"tag": f"_{number}"} for number in range(500)]}, 21),
        ({"pairs": [{**EN_DE, "source_prefix": [0] * 256}] * 9_000}, 21),
    ],
)
def test_thousands_of_wrong_entries_cost_little_and_are_a_few_lines(
    tmp_path: Path, value: dict[str, object], num_lines: int
) -> None:
    (tmp_path / "dragoman.json").write_text(json.dumps({"format": 1, **value}))
    tracemalloc.start()
    try:
        found = read_carried(tmp_path)[1]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == num_lines
    assert sum(map(len, found)) < 10_000
    assert peak < 16 * (tmp_path / "dragoman.json").stat().st_size + 2**24
    if num_lines > 1:
        assert found[-1] == "dragoman.json has more problems than these 20"


def test_huge_numbers_and_damaged_files_are_one_short_line(tmp_path: Path) -> None:
    huge = {**LIMITS, "max_source_length": 10**500}
    (line,) = problems(tmp_path, {"limits": huge})
    assert len(line) < 300
    for data in (b"", b"{", b"\xff", b'{"limits": NaN}', b"[" * 100_000):
        (tmp_path / "dragoman.json").write_bytes(data)
        (line,) = read_carried(tmp_path)[1]
        assert line.startswith("dragoman.json not")


def test_limits_beyond_the_position_table_are_refused(tmp_path: Path) -> None:
    config = {"max_position_embeddings": 39, "dragoman": {"format": 1, "limits": LIMITS}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_carried(tmp_path)[1] == [
        "config.json: dragoman.limits.max_source_length is 40; max_position_embeddings is 39"
    ]
