from dataclasses import replace

import pytest

from model.errors import ConfigError
from model.train.config.data import CorpusConfig, DataConfig, DirectionConfig
from model.train.config.experiment import Experiment
from model.train.config.filters import FilterConfig
from model.train.config.regularisation import RegularisationConfig
from model.train.config.run import RunConfig
from model.train.observer import fingerprint

TALK = CorpusConfig(name="talk", licence="CC0-1.0")
DATA = DataConfig(
    folder="en-zh",
    source_language="en",
    target_language="zh",
    target_tag="zh-Hans",
    train=(TALK,),
    dev=("held-out",),
    report=("test/news",),
)
EN_ZH = DATA.directions[0]
BACK = DirectionConfig(
    folder="en-zh",
    source_language="zh",
    target_language="en",
    train=(TALK,),
    dev=("held-out",),
)
EXPERIMENT = Experiment(name="tiny", licence="CC0-1.0", data=DATA, run=RunConfig(max_updates=1))


def mark(data: DataConfig) -> str:
    return fingerprint(replace(EXPERIMENT, data=data))


def test_one_direction_is_described_either_way() -> None:
    (direction,) = DATA.directions
    assert (direction.name, direction.source, direction.target) == ("en-zh", "en", "zh-Hans")
    several = DataConfig(pairs=(direction, BACK))
    assert [item.name for item in several.directions] == ["en-zh", "zh-en"]
    assert (DATA.is_tagged, several.is_tagged, DataConfig(pairs=(direction,)).is_tagged) == (
        False,
        True,
        True,
    )


def test_what_changes_the_batches_changes_the_fingerprint_and_nothing_else_does() -> None:
    other = replace(TALK, licence="MIT", url="https://example.org")
    for same in (
        replace(DATA, train=(other,)),
        replace(DATA, dev=("other",)),
        replace(DATA, report=()),
        replace(DATA, train=(replace(TALK, copies=1.0),)),
        replace(DATA, filters=FilterConfig(language_margin=0.0)),
    ):
        assert mark(same) == mark(DATA)
    changed = [
        replace(DATA, train=(replace(TALK, copies=0.5),)),
        replace(DATA, train=(TALK, replace(TALK, name="more"))),
        replace(DATA, train=(replace(TALK, max_characters=24),)),
        replace(DATA, max_length=20),
        replace(DATA, filters=FilterConfig(drop_duplicates=True)),
        replace(DATA, filters=FilterConfig(language_margin=0.2)),
        replace(DATA, regularisation=RegularisationConfig()),
        replace(DATA, folder="zh-en"),
        DataConfig(pairs=(*DATA.directions, BACK)),
        DataConfig(pairs=(*DATA.directions, BACK), temperature=2.0),
    ]
    assert len({mark(data) for data in (DATA, *changed)}) == len(changed) + 1


@pytest.mark.parametrize("copies", [0.0, 4e-7, -1.0, 1e300, float("inf"), float("nan")])
def test_copies_are_what_an_epoch_can_deal_out(copies: float) -> None:
    with pytest.raises(ConfigError, match=r"data\.train\.copies is .*; it must be from 0.000001"):
        replace(TALK, copies=copies)


def test_a_corpus_with_another_side_has_a_name_of_its_own() -> None:
    taught = replace(TALK, target_file="runs/teacher/talk.zh")
    both = replace(DATA, train=(TALK, taught))
    assert [corpus.label for corpus in both.train] == ["talk", "talk with runs/teacher/talk.zh"]
    typed = replace(taught, variant="lower")
    assert typed.label == "talk, lower with runs/teacher/talk.zh"
    short = replace(typed, max_characters=24)
    assert short.label == "talk, lower, at most 24 characters with runs/teacher/talk.zh"


@pytest.mark.parametrize("limit", [0, -1])
def test_a_corpus_without_any_character_is_refused(limit: int) -> None:
    with pytest.raises(
        ConfigError, match=r"data\.train\.max_characters is .*; it must be at least"
    ):
        replace(TALK, max_characters=limit)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"pairs": (EN_ZH, EN_ZH), "folder": ""}, "data.pairs has the suffixes en-zh twice"),
        (
            {"pairs": (EN_ZH, replace(EN_ZH, target_language="cn"))},
            "data.pairs has the tags en → zh-Hans twice",
        ),
        ({"pairs": (EN_ZH,), "folder": "en-zh"}, "data.folder and data.pairs are both set"),
        ({"pairs": (EN_ZH, BACK), "max_length": 2}, "data.max_length is 2; it must be from 3"),
        (
            {},
            "data.folder is missing; data.source_language is missing; data.target_language is",
        ),
        ({"temperature": 0.5}, "data.temperature is 0.5; it must be at least 1"),
        (
            {"pairs": (EN_ZH,), "temperature": 5.0},
            "data.temperature is 5.0; it must be 1 where there is one direction",
        ),
        (
            {
                "pairs": (EN_ZH, replace(BACK, source_tag="tlh")),
                "filters": FilterConfig(min_script_share=0.1),
            },
            "data.filters.min_script_share: the script of 'tlh' is not known",
        ),
        (
            {
                "pairs": (replace(EN_ZH, target_tag="en-GB"),),
                "filters": FilterConfig(language_margin=0.2),
            },
            "data.filters.language_margin is 0.2; it must be 0 where all text is of one language",
        ),
    ],
)
def test_impossible_data_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DataConfig(**values)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="names 'talk' twice; give it copies instead"):
        replace(DATA, train=(TALK, TALK))


@pytest.mark.parametrize("key", ["dev", "report"])
def test_held_out_text_that_is_named_twice_is_refused_however_it_is_written(key: str) -> None:
    first = "talk" if key == "dev" else "dev/talk"
    for second in (first, "en-zh/dev/talk"):
        message = rf"^data\.{key}\[2\] is '{second}', which is named before it; each corpus must be"
        with pytest.raises(ConfigError, match=message):
            replace(DATA, **{key: (first, "zh-en/dev/talk", second)})


def test_held_out_text_may_lie_in_another_folder_and_its_names_tell() -> None:
    direction = replace(
        BACK,
        dev=(
            "held-out",
            "en-zh/dev/more",
            "en-zh/test/more",
            "zh-en/dev/held-out",
            "dev/test/more",
        ),
        report=("en-zh/test/news", "zh-en/test/news", "dev/test/news"),
    )
    found = [
        (f"{item.folder}/{item.split}/{item.corpus}", item.name, item.dev_name)
        for item in direction.dev_corpora
    ]
    assert found == [
        ("en-zh/dev/held-out", "dev/held-out", "held-out"),
        ("en-zh/dev/more", "dev/more", "more"),
        ("en-zh/test/more", "test/more", "test/more"),
        ("zh-en/dev/held-out", "zh-en/dev/held-out", "zh-en/dev/held-out"),
        ("dev/test/more", "dev/test/more", "dev/test/more"),
    ]
    one, other, odd = direction.report_corpora
    assert replace(BACK, report=("test/news",)).report_corpora == (one,)
    assert [item.name for item in (one, other, odd)] == [
        "test/news",
        "zh-en/test/news",
        "dev/test/news",
    ]


@pytest.mark.parametrize(
    ("key", "entry", "shape"),
    [
        ("report", "news", "split/corpus"),
        ("report", "data/zh-en/test/news", "split/corpus"),
        ("report", "/test/news", "split/corpus"),
        ("report", "test/", "split/corpus"),
        ("report", "../test/news", "split/corpus"),
        ("dev", "", "corpus"),
        ("dev", "dev/news", "corpus"),
        ("dev", "zh-en/./news", "corpus"),
        ("dev", "data/zh-en/dev/news", "corpus"),
    ],
)
def test_held_out_text_has_a_name_of_so_many_parts(key: str, entry: str, shape: str) -> None:
    message = rf"^data\.{key} has '{entry}'; it must be {shape} or folder/split/corpus$"
    with pytest.raises(ConfigError, match=message):
        replace(DATA, **{key: (entry,)})  # type: ignore[arg-type]  # one of two tuples of text
