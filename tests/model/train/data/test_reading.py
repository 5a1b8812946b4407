"""From files to what a run reads, without training."""

import gzip
import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from model.errors import DataError, TrainingError
from model.train.config.data import CorpusConfig, DataConfig
from model.train.config.filters import FilterConfig
from model.train.config.regularisation import RegularisationConfig
from model.train.config.vocabulary import VocabularyConfig
from model.train.config.yaml_lines import KeyPlaces
from model.train.data.corpora import TEXT_FILE
from model.train.data.vocabulary import load_pieces
from support.logged import events_of, fields_of
from support.parallel_folder import (
    BOTH,
    DATA,
    EN_ZH,
    EXPERIMENT,
    PAIRS,
    TALK,
    ZH_EN,
    filtered,
    read,
    write,
    written_folder,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written_folder(tmp_path)


def test_stored_rows_are_what_the_vocabulary_says(folder: Path) -> None:
    text = read(folder)
    pieces = load_pieces(text.vocabularies.source_path)
    sources, targets = text.pairs.rows(list(range(70)), epoch=0, number=0)
    for source, target, pair in zip(sources, targets, PAIRS[:70], strict=True):
        assert source.tolist() == [*pieces.encode(pair[0]), 1]
        assert target.tolist() == [*pieces.encode(pair[1]), 1]
    assert len(text.dev["held-out"].pairs) == 10
    assert list(text.report) == ["dev/held-out"]


def test_a_second_run_reads_what_the_first_one_stored(folder: Path) -> None:
    def files() -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in (folder / "run" / "text").glob("*/*")}

    first = read(folder)
    stored = files()
    assert len(stored) == 5
    again = read(folder, is_vocabulary_there=True, is_resumed=True)
    assert files() == stored
    assert again.reports == first.reports
    assert again.pairs.source_lengths.tolist() == first.pairs.source_lengths.tolist()


def test_other_text_filters_or_lengths_are_stored_anew(folder: Path) -> None:
    cache = folder / "cache"
    read(folder, cache=cache)
    changes = (
        EXPERIMENT,
        replace(EXPERIMENT, data=replace(DATA, max_length=20)),
        filtered(drop_duplicates=True),
        replace(EXPERIMENT, data=replace(DATA, regularisation=RegularisationConfig())),
    )
    for number, experiment in enumerate(changes, start=1):
        read(folder, experiment, is_vocabulary_there=True, cache=cache)
        assert len(list(cache.iterdir())) == number
    write(folder, "talk", PAIRS[:69])
    read(folder, is_vocabulary_there=True, cache=cache)
    assert len(list(cache.iterdir())) == len(changes) + 1
    assert not (folder / "run" / "text").exists()


def test_a_resumed_run_refuses_text_that_has_changed(folder: Path) -> None:
    read(folder)
    read(folder, is_vocabulary_there=True, is_resumed=True)
    write(folder, "talk", [*PAIRS[:69], ("The cat waits.", PAIRS[69][1])])
    message = r"text\.json: the training text is not .* changed: en-zh talk, source$"
    with pytest.raises(TrainingError, match=message):
        read(folder, is_vocabulary_there=True, is_resumed=True)
    (folder / "run" / TEXT_FILE).write_text("{}")
    with pytest.raises(TrainingError, match=r"text\.json: cannot be read"):
        read(folder, is_vocabulary_there=True, is_resumed=True)


def test_what_is_left_out_is_counted_by_corpus_and_reason(folder: Path) -> None:
    extra = [
        PAIRS[0],
        ("Same here", "same here!"),
        ("", "空"),
        ("x" * 500, "猫"),
        ("7" * 60, "猫"),
        ("7" * 150, "七" * 50),
        ("the dog", "der Hund"),
        ("A new line", "新的一行"),
    ]
    write(folder, "more", extra)
    experiment = filtered(
        drop_blank=True,
        drop_identical=True,
        drop_duplicates=True,
        max_characters=400,
        max_ratio=12.0,
        min_script_share=0.3,
    )
    corpora = (TALK, CorpusConfig(name="more", licence="CC0-1.0"))
    experiment = replace(experiment, data=replace(experiment.data, train=corpora, max_length=100))
    talk, more = read(folder, experiment).reports
    assert talk.num_pairs == 70
    assert talk.num_kept == len(dict.fromkeys(PAIRS[:70]))
    assert (more.num_pairs, more.num_kept) == (8, 1)
    assert more.dropped == {
        "blank": 1,
        "characters": 1,
        "identical": 1,
        "target script": 1,
        "duplicate": 1,
        "length": 1,
        "ratio": 1,
    }
    facts = json.loads((folder / "run" / TEXT_FILE).read_text(encoding="utf-8"))
    assert [corpus["name"] for corpus in facts["corpora"]] == ["talk", "more"]
    assert facts["corpora"][1]["dropped"] == more.dropped


def test_held_out_pairs_in_training_text_are_counted_and_warned_of(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    others = [("Good day.", "你好。"), ("Good night.", "晚安。")]
    write(folder, "held-out", others, "dev")
    read(folder)
    assert not fields_of(caplog, "held_out_text_in_training")
    write(folder, "talk", [*PAIRS[:70], *others, others[0], ("Good day.", "晚安。")])
    for is_vocabulary_there in (False, True):  # filtered before the vocabulary, or behind it
        caplog.clear()
        cache = folder / f"cache-{is_vocabulary_there}"
        read(folder, is_vocabulary_there=is_vocabulary_there, cache=cache)
        [fields] = fields_of(caplog, "held_out_text_in_training")
        assert (fields["corpus"], fields["pairs"]) == ("en-zh talk", 3)
    caplog.clear()
    read(
        folder, filtered(max_characters=10), is_vocabulary_there=True
    )  # of one that is left out nothing is learnt
    [fields] = fields_of(caplog, "held_out_text_in_training")
    assert fields["pairs"] == 2


def test_held_out_pairs_of_another_direction_are_not_warned_of(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(folder, "other", PAIRS[:5], "dev")
    one = replace(EN_ZH, train=(replace(TALK, name="more"),), dev=("other",))
    write(folder, "more", [("Good day.", "你好。")])
    write(folder, "held-out", [("Good night.", "晚安。")], "dev")
    read(folder, replace(EXPERIMENT, data=DataConfig(pairs=(one, ZH_EN))))
    assert not fields_of(caplog, "held_out_text_in_training")


def test_a_corpus_whose_lines_end_in_carriage_returns_alone_is_told_so(folder: Path) -> None:
    for language in ("en", "zh"):
        path = folder / "en-zh" / "train" / f"talk.{language}"
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    size = len((folder / "en-zh" / "train" / "talk.en").read_bytes().decode()) - 1
    message = rf"; .*talk\.en is one line of {size} characters, with carriage returns inside: only"
    with pytest.raises(DataError, match=r"nothing is left to train on: .*" + message):
        read(folder, filtered(max_characters=40))


def test_a_corpus_of_which_nothing_is_left_is_named(folder: Path) -> None:
    key = r"^data\.train\[0\]: "
    with pytest.raises(DataError, match=key + r".*talk\.en: nothing is left .* characters 70"):
        read(folder, filtered(max_characters=2))
    write(folder, "held-out", [("the", "the")], "dev")
    short = replace(EXPERIMENT, data=replace(DATA, max_length=2))
    with pytest.raises(DataError, match=key + r".*talk\.en: nothing is left .* length 70"):
        read(folder, short)
    assert not list((folder / "run").glob("text/*"))


def test_a_corpus_can_stand_there_again_in_another_form(folder: Path) -> None:
    corpora = (TALK, replace(TALK, variant="upper", copies=0.5))
    experiment = replace(EXPERIMENT, data=replace(DATA, train=corpora))
    write(folder, "talk", [*PAIRS[:69], ("42", "42")])
    text = read(folder, experiment)
    plain, capitals = text.reports
    assert [plain.name, capitals.name] == ["talk", "talk, upper"]
    assert (plain.num_kept, capitals.num_kept) == (70, 69)
    assert capitals.dropped == {"no variant": 1}
    pieces = load_pieces(text.vocabularies.source_path)
    sources, _ = text.pairs.rows(list(range(70, 139)), epoch=0, number=0)
    assert [row.tolist() for row in sources] == [
        [*pieces.encode(source.upper()), 1] for source, _ in PAIRS[:69]
    ]


def test_short_pairs_of_a_corpus_can_occur_more_often_than_the_rest(folder: Path) -> None:
    longest = [max(map(len, pair)) for pair in PAIRS[:70]]  # as `folder` has them
    limit = sorted(longest)[30]
    num_short = sum(one <= limit for one in longest)
    corpora = (replace(TALK, max_characters=limit, copies=3), TALK)
    data = replace(DATA, train=corpora, filters=FilterConfig(drop_duplicates=True))
    text = read(folder, replace(EXPERIMENT, data=data))
    short, rest = text.reports
    assert short.dropped == {"characters": 70 - num_short}
    assert rest.dropped == {"duplicate": num_short}
    assert text.pairs.epoch_copies(0).tolist() == [3] * num_short + [1] * (70 - num_short)


def test_the_target_of_a_corpus_can_be_another_file(folder: Path) -> None:
    teacher = folder / "teacher.zh.gz"
    teacher.write_bytes(gzip.compress("".join(f"{pair[1]}！\n" for pair in PAIRS[:70]).encode()))
    distilled = CorpusConfig(name="talk", licence="CC0-1.0", target_file=str(teacher))
    experiment = replace(EXPERIMENT, data=replace(DATA, train=(TALK, distilled)))
    text = read(folder, experiment)
    assert [report.num_kept for report in text.reports] == [70, 70]
    assert text.reports[1].name == f"talk with {teacher}"
    pieces = load_pieces(text.vocabularies.target_path)
    _, targets = text.pairs.rows([0, 70], epoch=0, number=0)
    assert pieces.decode(targets[1][:-1].tolist()) == pieces.decode(
        [*targets[0][:-1].tolist(), *pieces.encode("！")]
    ).replace(" ", "")


def test_several_directions_share_a_network_and_say_their_target(folder: Path) -> None:
    text = read(folder, BOTH)
    pieces = load_pieces(text.vocabularies.source_path)
    sources, targets = text.pairs.rows([0, 70], epoch=0, number=0)
    tags = [pieces.piece_to_id(">>zh-Hans<<"), pieces.piece_to_id(">>en<<")]
    assert tags == [3, 4]
    assert [int(row[0]) for row in sources] == tags
    assert sources[0].tolist()[1:] == targets[1].tolist()
    assert [report.direction for report in text.reports] == ["en-zh", "zh-en"]
    assert list(text.dev) == ["en-zh/held-out", "zh-en/held-out"]
    assert list(text.report) == ["en-zh/dev/held-out", "zh-en/dev/held-out"]
    dev = text.dev["zh-en/held-out"]
    assert dev.pair.source_prefix == (">>en<<",)
    assert int(dev.pairs.source(0)[0]) == tags[1]
    assert tags[0] not in pieces.encode("typed by a user: >>zh-Hans<<")


def test_a_hot_mixture_reads_the_small_direction_more_often(folder: Path) -> None:
    write(folder, "few", PAIRS[:7])
    small = replace(ZH_EN, train=(CorpusConfig(name="few", licence="CC0-1.0"),))
    for temperature, expected in ((1.0, (70, 7)), (1e6, (38, 38))):
        data = DataConfig(pairs=(EN_ZH, small), temperature=temperature)
        copies = read(folder, replace(BOTH, data=data)).pairs.epoch_copies(0)
        assert (copies[:70].sum(), copies[70:].sum()) == expected


def test_a_vocabulary_without_the_tags_or_the_symbols_is_no_beginning(folder: Path) -> None:
    read(folder)
    with pytest.raises(DataError, match=r"^data\.pairs: .*joint\.spm: has no piece '>>zh-Hans<<'"):
        read(folder, BOTH, is_vocabulary_there=True)
    vocabulary = replace(EXPERIMENT.vocabulary, user_symbols=("<ph>",))
    places = KeyPlaces(path=Path("tiny.yaml"), lines={"vocabulary.user_symbols": 9})
    message = r"^tiny\.yaml:9: vocabulary\.user_symbols: .*joint\.spm: has no piece '<ph>'"
    with pytest.raises(DataError, match=message):
        read(
            folder,
            replace(EXPERIMENT, vocabulary=vocabulary),
            is_vocabulary_there=True,
            places=places,
        )


def test_copies_that_leave_no_pair_are_refused_with_their_key(folder: Path) -> None:
    few = replace(EXPERIMENT, data=replace(DATA, train=(replace(TALK, copies=0.001),)))
    places = KeyPlaces(path=Path("tiny.yaml"), lines={"data": 3, "data.train": 7})
    with pytest.raises(DataError, match=r"^tiny\.yaml:7: data\.train\.copies leave 0\.07 pairs"):
        read(folder, few, places=places)


def test_user_symbols_are_one_piece_and_few_lines_are_enough(folder: Path) -> None:
    vocabulary = VocabularyConfig(size=400, user_symbols=("<ph>",), max_lines=40)
    text = read(folder, replace(EXPERIMENT, vocabulary=vocabulary))
    pieces = load_pieces(text.vocabularies.source_path)
    assert "<ph>" in pieces.encode("The<ph>cat", out_type=str)


def test_a_damaged_cache_is_made_again(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = read(folder).pairs.source_lengths.tolist()
    (store,) = (folder / "run" / "text").iterdir()
    (store / "source-ids.values").write_bytes(b"damaged!")
    with caplog.at_level(logging.WARNING, logger="dragoman.train"):
        after = read(folder, is_vocabulary_there=True, is_resumed=True)
    assert after.pairs.source_lengths.tolist() == before
    assert [event for event, _ in events_of(caplog)] == ["store_made_again"]
