"""The class of a pipeline without Ray: its columns, its reasons, and what it refuses."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from model.config import SearchConfig
from model.errors import CheckpointError, ConfigError, DecodingError, InputError
from model.offline.bulk.ray_data import ColumnTranslator, translation_method
from model.offline.bulk.task import Method, open_network
from support.bulk_jobs import sentences
from support.tiny_checkpoint import EN_ZH, ZH_EN, write_tiny_checkpoint

SEARCH = SearchConfig(beam_size=2)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("ray_data") / "tiny")


@pytest.fixture(scope="module")
def method(checkpoint: Path) -> Method:
    return translation_method(
        checkpoint, target=EN_ZH.target, search=SEARCH, max_rows=16, max_characters=10_000
    )


@pytest.fixture
def translator(method: Method) -> Iterator[ColumnTranslator]:
    translator = ColumnTranslator(method, ["title", "body"], suffix="_new", reason_column="why")
    yield translator
    translator.close()


async def _all(translator: ColumnTranslator, *batches: Any) -> list[Any]:
    """Batches that are on their way at once."""

    async def one(batch: Any) -> Any:
        (done,) = [done async for done in translator(batch)]
        return done

    return await asyncio.gather(*map(one, batches))


def _batch(titles: list[str | None], bodies: list[str | None]) -> Any:
    strings = [pa.array(column, type=pa.string()) for column in (titles, bodies)]
    return pa.table(dict(zip(("title", "body"), strings, strict=True)))


def test_batches_on_their_way_at_once_are_what_the_offline_translator_makes_of_them(
    translator: ColumnTranslator, method: Method
) -> None:
    texts = sentences(40)
    expected = [one.text for one in open_network(method).translate(texts, EN_ZH, SEARCH)]
    batches = [_batch([*texts[at : at + 5]], [*texts[at + 5 : at + 10]]) for at in range(0, 40, 10)]
    found = asyncio.run(_all(translator, *batches))
    columns = [
        text
        for table in found
        for name in ("title_new", "body_new")
        for text in table.column(name).to_pylist()
    ]
    assert columns == expected
    assert {why for table in found for why in table.column("why").to_pylist()} == {None}
    assert found[0].schema.names == ["title", "body", "title_new", "body_new", "why"]


def test_a_row_says_why_which_of_its_columns_has_no_translation(
    translator: ColumnTranslator,
) -> None:
    batch = _batch([None, "A cat.", "a" * 10_001], ["A dog.", "", None])
    (table,) = asyncio.run(_all(translator, batch))
    assert table.column("why").to_pylist() == [
        "title: null",
        None,
        "title: 10001 characters; a text may have 10000; body: null",
    ]
    titles, bodies = (table.column(name).to_pylist() for name in ("title_new", "body_new"))
    assert [title is None for title in titles] == [True, False, True]
    assert [body is None for body in bodies] == [False, False, True]
    assert bodies[1] == ""


def test_a_text_without_a_finite_score_is_a_reason(
    translator: ColumnTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    session: Any = translator._session  # no text makes a real network do that
    real = session.translate

    def translate(texts: Any) -> Any:
        pile = real(texts)
        pile.result()[0] = DecodingError("no score")
        return pile

    monkeypatch.setattr(session, "translate", translate)
    (table,) = asyncio.run(_all(translator, _batch(["A cat."], ["A dog."])))
    assert table.column("why").to_pylist() == ["title: the network gave no finite score"]
    assert table.column("title_new").to_pylist() == [None]


def test_a_batch_without_rows_has_the_columns(translator: ColumnTranslator) -> None:
    (table,) = asyncio.run(_all(translator, _batch([], [])))
    assert table.num_rows == 0
    assert table.schema.field("why").type == pa.string()


@pytest.mark.parametrize(
    ("columns", "others", "told"),
    [
        ("title", {}, "columns is 'title'; it is a list of names"),
        ([], {}, r"columns is \[\]; it is a list of names"),
        (["a", "a"], {}, "columns, new columns and reasons name 'a' twice"),
        (["a"], {"suffix": ""}, "columns, new columns and reasons name 'a' twice"),
        (["a"], {"reason_column": "a"}, "columns, new columns and reasons name 'a' twice"),
    ],
)
def test_names_that_cannot_be_are_one_error(
    method: Method, columns: Any, others: dict[str, str], told: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{told}$"):
        ColumnTranslator(method, columns, **others)


def test_the_direction_is_the_one_that_is_meant(checkpoint: Path) -> None:
    assert translation_method(checkpoint, source="en").pair == EN_ZH
    assert translation_method(checkpoint, target="EN").pair == ZH_EN
    assert translation_method(checkpoint, source="zh-CN").pair == ZH_EN
    assert translation_method(checkpoint, target="zh_Hans").pair == EN_ZH
    zh = EN_ZH.target
    with pytest.raises(ConfigError, match=f"^tiny has 2 directions for any-any; .* en-{zh}, {zh}-"):
        translation_method(checkpoint)
    with pytest.raises(ConfigError, match=r"^tiny has no directions for de-any; it translates "):
        translation_method(checkpoint, source="de")
    with pytest.raises(InputError, match="'!' is not a well-formed language tag"):
        translation_method(checkpoint, source="!")


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({"num_threads": 0}, r"num_threads is 0; it must be from 1 to \d+"),
        ({"max_rows": 0}, "max_rows is 0; it must be at least 1"),
        ({"max_characters": -1}, "max_characters is -1; it must be at least 1"),
        ({"device": "auto"}, "device is 'auto'; an actor's is 'cpu' or 'cuda'"),
    ],
)
def test_numbers_that_cannot_be_are_one_error(
    checkpoint: Path, others: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{told}$"):
        translation_method(checkpoint, source="en", **others)


def test_a_checkpoint_that_is_not_there_is_told_where_the_pipeline_is_made(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="none"):
        translation_method(tmp_path / "none")


def test_a_beam_that_is_wider_than_the_rows_has_its_rows(checkpoint: Path) -> None:
    wide = SearchConfig(beam_size=8)
    assert translation_method(checkpoint, source="en", search=wide, max_rows=4).max_rows == 8
