import json
from pathlib import Path

import pytest

from model.errors import ForeignModelError
from model.exchange.imports.huggingface.folder import HuggingFaceFolder, model_type


def folder_of(path: Path, **config: object) -> HuggingFaceFolder:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    return HuggingFaceFolder(path)


def test_the_family_is_what_the_configuration_says(tmp_path: Path) -> None:
    assert model_type(tmp_path) is None
    assert model_type(tmp_path / "nothing") is None
    for text, expected in [
        ('{"model_type": "marian"}', "marian"),
        ('{"model_type": 3}', None),
        ("[1]", None),
        ("{", None),
        ("", None),
        ("[" * 100_000, None),
    ]:
        (tmp_path / "config.json").write_text(text)
        assert model_type(tmp_path) == expected


def test_values_of_other_types_are_problems(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "model", d_model="32", layers=True, scale=1, act="mish")
    folder.integer("d_model")
    folder.integer("layers")
    folder.integer("missing")
    folder.flag("scale", default=False)
    folder.choice("act", {"relu": 1}, "relu")
    with pytest.raises(ForeignModelError) as caught:
        folder.raise_problems()
    assert caught.value.problems == (
        "config.json: d_model is '32'; it must be an integer",
        "config.json: layers is True; it must be an integer",
        "config.json: missing is missing; it must be an integer",
        "config.json: scale is 1; it must be true or false",
        "config.json: act is 'mish'; only relu can be converted",
    )


def test_defaults_stand_for_what_is_not_said(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "model")
    assert folder.integer("d_model", default=7) == 7
    assert folder.flag("scale", default=True) is True
    assert folder.choice("act", {"relu": 1}, "relu") == 1
    folder.raise_problems()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "config.json is missing"),
        ("{", "config.json not readable JSON"),
        ("[]", "config.json is no JSON object"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_named(
    tmp_path: Path, data: str | None, message: str
) -> None:
    if data is not None:
        (tmp_path / "config.json").write_text(data)
    with pytest.raises(ForeignModelError, match=message):
        HuggingFaceFolder(tmp_path)


@pytest.mark.parametrize(
    ("searching", "config", "expected"),
    [
        ({"decoder_start_token_id": 3}, {}, 3),
        ({"decoder_start_token_id": 3}, {"decoder_start_token_id": 4}, 3),
        ({"decoder_start_token_id": None}, {"decoder_start_token_id": 4}, 4),
        (None, {"decoder_start_token_id": 4}, 4),
        (None, {"decoder_start_token_id": None}, 9),
        ({}, {}, 9),
        ({"decoder_start_token_id": [3]}, {}, "generation_config.json: decoder_start_token_id is"),
        (None, {"decoder_start_token_id": True}, "config.json: decoder_start_token_id is True"),
    ],
)
def test_the_description_of_the_search_says_first_what_a_target_starts_from(
    tmp_path: Path,
    searching: dict[str, object] | None,
    config: dict[str, object],
    expected: int | str,
) -> None:
    if searching is not None:
        (tmp_path / "generation_config.json").write_text(json.dumps(searching))
    folder = folder_of(tmp_path, **config)
    found = folder.start_id(default=9)
    if isinstance(expected, int):
        assert found == expected
        folder.raise_problems()
    else:
        (problem,) = folder.problems
        assert problem.startswith(expected)


def test_a_start_that_nothing_says_is_a_problem_where_there_is_no_usual_one(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    folder.start_id()
    assert folder.problems == [
        "config.json: decoder_start_token_id is missing; it must be an integer"
    ]


def test_suppressed_tokens_come_from_both_lists(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "model", bad_words_ids=[[7], [3]], suppress_tokens=[5, 3])
    assert folder.suppressed() == (3, 5, 7)
    (tmp_path / "model" / "generation_config.json").write_text('{"bad_words_ids": [["x"]]}')
    folder = HuggingFaceFolder(tmp_path / "model")
    assert folder.suppressed() == ()
    assert folder.problems == ["bad_words_ids or suppress_tokens has something that is no id"]


@pytest.mark.parametrize(
    ("stated", "made_from"),
    [
        ("Helsinki-NLP/opus-mt-en-de", "opus-mt-en-de"),
        ("opus-mt-en-de", "opus-mt-en-de"),
        ("/home/someone/opus", ""),
        ("../opus", ""),
        (None, ""),
    ],
)
def test_a_model_is_called_as_its_folder_and_not_as_what_it_was_trained_from(
    tmp_path: Path, stated: str | None, made_from: str
) -> None:
    folder = folder_of(tmp_path / "mine", _name_or_path=stated)
    (tmp_path / "mine" / "README.md").write_text("---\nlicense: mit\n---\n")
    assert (folder.name, folder.made_from) == ("mine", made_from)
    assert folder.names == (("mine", made_from) if made_from else ("mine",))
    assert [(each.corpus, each.licence, each.url) for each in folder.licences] == [
        ("mine", "MIT", None)
    ]


@pytest.mark.parametrize(
    ("cached", "name", "url"),
    [
        ("models--Helsinki-NLP--opus-mt-en-de", "opus-mt-en-de", "Helsinki-NLP/opus-mt-en-de"),
        ("models--t5-small", "t5-small", "t5-small"),
    ],
)
def test_a_folder_of_the_hubs_cache_has_the_name_and_address_of_its_repository(
    tmp_path: Path, cached: str, name: str, url: str
) -> None:
    path = tmp_path / cached / "snapshots" / "0123456789abcdef"
    path.parent.mkdir(parents=True)
    folder = folder_of(path, _name_or_path="facebook/base")
    (path / "README.md").write_text("---\nlicense: mit\n---\n")
    assert folder.names == (name, "base")
    assert [each.url for each in folder.licences] == [f"https://huggingface.co/{url}"]


def test_a_folder_that_one_stands_in_has_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_of(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    assert HuggingFaceFolder(Path()).name == "mine"


def test_the_licence_is_the_cards(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "model")
    assert (folder.licence, folder.licences) == (None, ())
    (tmp_path / "model" / "README.md").write_text("---\nlicense:\n- cc-by-nc-4.0\n---\n")
    assert HuggingFaceFolder(tmp_path / "model").licence == "CC-BY-NC-4.0"


@pytest.mark.parametrize("tokens", [[[]], [{}], [[1]], [None]])
def test_suppressed_tokens_that_are_no_ids_are_a_problem(tmp_path: Path, tokens: object) -> None:
    folder = folder_of(tmp_path / "model", suppress_tokens=tokens)
    assert folder.suppressed() == ()
    assert folder.problems == ["bad_words_ids or suppress_tokens has something that is no id"]


def test_what_stands_for_a_file_in_a_clone_without_git_lfs_is_told(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    for name in ("spiece.model", "vocab.json"):
        (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    assert folder.pieces("spiece.model") == (b"", None)
    assert folder.vocabulary("vocab.json") == {}
    assert folder.problems == [
        f"{name} is a pointer of git-lfs and not the file; `git lfs pull` in the clone fetches it"
        for name in ("spiece.model", "vocab.json")
    ]
