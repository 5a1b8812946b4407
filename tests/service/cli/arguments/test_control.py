"""Flags that control translations, and the file of a glossary."""

import argparse
import os
from pathlib import Path

import pytest

from model.config import Sampling, SearchConfig
from model.errors import ConfigError, DataError
from service.cli.arguments.control import (
    add_control_arguments,
    chosen_control,
    controlled,
    divided,
    drawn,
    read_glossary,
)


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_control_arguments(parser)
    return parser.parse_args(arguments)


def test_without_flags_nothing_is_wanted() -> None:
    search = SearchConfig()
    assert drawn(search, parsed()) is search
    control = chosen_control(parsed())
    assert (control.target_prefix, control.glossary) == ("", None)


def test_any_flag_of_drawing_draws() -> None:
    found = drawn(SearchConfig(beam_size=2), parsed("--top-p", "0.9", "--seed", "4"))
    assert found.sampling == Sampling(top_p=0.9, seed=4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seed", "3"), "--seed needs"),
        (("--temperature", "0"), "temperature is 0.0"),
        (("--top-k", "500"), "top_k is 500"),
    ],
)
def test_what_nothing_can_be_drawn_by_is_refused(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        drawn(SearchConfig(), parsed(*arguments))


def test_a_beam_is_divided_where_a_flag_asks_for_it() -> None:
    search = SearchConfig(beam_size=6)
    assert divided(search, parsed()) is search
    found = divided(search, parsed("--beam-groups", "3"))
    assert (found.num_groups, found.group_size, found.diversity_penalty) == (3, 2, 0.5)
    found = divided(search, parsed("--beam-groups", "2", "--diversity-penalty", "1.5"))
    assert (found.num_groups, found.diversity_penalty) == (2, 1.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--beam-groups", "1"), "--beam-groups is 1"),
        (("--beam-groups", "4"), "--beam-size is 6; it must be a multiple of --beam-groups"),
        (("--diversity-penalty", "1"), "--beam-groups is not given"),
        (("--beam-groups", "2", "--diversity-penalty", "0"), "diversity_penalty is 0.0"),
    ],
)
def test_what_no_beam_can_be_divided_by_is_refused(
    arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        divided(SearchConfig(beam_size=6), parsed(*arguments))


def test_what_is_drawn_is_not_divided() -> None:
    drawing = SearchConfig(beam_size=4, sampling=Sampling())
    with pytest.raises(ConfigError, match="what is drawn"):
        divided(drawing, parsed("--beam-groups", "2"))


def test_all_flags_of_the_search_make_one_search() -> None:
    search = SearchConfig(beam_size=4)
    assert controlled(search, parsed()) == search
    found = controlled(search, parsed("--beam-groups", "2", "--no-repeat-ngram", "3"))
    assert (found.num_groups, found.no_repeat_ngram) == (2, 3)
    found = controlled(search, parsed("--top-k", "5", "--no-repeat-ngram", "3"))
    assert (found.sampling, found.no_repeat_ngram) == (Sampling(top_k=5), 3)
    with pytest.raises(ConfigError, match="no_repeat_ngram is 17; it must be from 0 to 16"):
        controlled(search, parsed("--no-repeat-ngram", "17"))


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("a" * 2001, "has 2001 characters"),
        ("a\nb", "must be one line"),
        (
            os.fsdecode(b"Gr\xfc\xdfe"),
            r"^--prefix is not valid UTF-8 \(invalid start byte at byte 3\)$",
        ),
    ],
)
def test_a_prefix_that_cannot_be_is_refused(prefix: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        chosen_control(parsed("--prefix", prefix))


def test_a_glossary_has_an_entry_a_line(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("\ufeffcat\tKatze \n\n web server\tWebserver\r\n", encoding="utf-8")
    entries = read_glossary(path).entries
    assert [(one.source, one.target) for one in entries] == [
        ("cat", "Katze"),
        ("web server", "Webserver"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"cat Katze\n", r"terms.tsv:1: 'cat Katze' is not a term, a tab"),
        (b"a\tb\nc\t\n", "terms.tsv:2"),
        (b"a\tb\tc\n", "terms.tsv:1"),
        (b"a\tb\n" * 501, "has 501 entries; it may have 500"),
        (b"a\t" + b"b" * 201, "a term has 201 characters; it may have 200"),
        (b"\xff\tb", "not valid UTF-8"),
        (b"\n" * 1_000_000, "has more than"),
    ],
)
def test_a_file_that_is_no_glossary_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_glossary(path)
    with pytest.raises(DataError, match="No such file"):
        read_glossary(tmp_path / "absent")
