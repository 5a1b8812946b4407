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


def test_suppressed_tokens_come_from_both_lists(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "model", bad_words_ids=[[7], [3]], suppress_tokens=[5, 3])
    assert folder.suppressed() == (3, 5, 7)
    (tmp_path / "model" / "generation_config.json").write_text('{"bad_words_ids": [["x"]]}')
    folder = HuggingFaceFolder(tmp_path / "model")
    assert folder.suppressed() == ()
    assert folder.problems == ["bad_words_ids or suppress_tokens has something that is no id"]


@pytest.mark.parametrize(
    ("hub_name", "name", "url"),
    [
        ("Helsinki-NLP/opus-mt-en-de", "opus-mt-en-de", True),
        ("opus-mt-en-de", "opus-mt-en-de", False),
        ("/home/someone/opus", "model", False),
        ("../opus", "model", False),
        (None, "model", False),
    ],
)
def test_a_model_is_called_as_on_the_hub_or_as_its_folder(
    tmp_path: Path, hub_name: str | None, name: str, url: bool
) -> None:
    folder = folder_of(tmp_path / "model", _name_or_path=hub_name)
    (tmp_path / "model" / "README.md").write_text("---\nlicense: mit\n---\n")
    assert folder.name == name
    assert folder.licence == "MIT"
    expected = f"https://huggingface.co/{hub_name}" if url else None
    assert [each.url for each in folder.licences] == [expected]


@pytest.mark.parametrize(
    ("page", "licence"),
    [
        ("---\nlicense: 'apache-2.0'\n---\n", "Apache-2.0"),
        ("---\nlicense: odd-licence\n---\n", "odd-licence"),
        ("---\nlanguage: en\n---\nlicense: mit\n", None),
        ("license: mit\n", None),
        ("", None),
    ],
)
def test_the_licence_is_read_from_the_head_of_the_card_only(
    tmp_path: Path, page: str, licence: str | None
) -> None:
    folder = folder_of(tmp_path / "model")
    (tmp_path / "model" / "README.md").write_text(page)
    assert folder.licence == licence
