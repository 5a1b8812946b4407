"""Flags by which a person controls translations: their beginning, their terms, and the search.

Owns `--prefix`, `--glossary`, `--temperature`, `--top-k`, `--top-p`, `--seed`, `--beam-groups`,
`--diversity-penalty` and `--no-repeat-ngram`, and the file of a glossary.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from model.config import (
    DEFAULT_DIVERSITY_PENALTY,
    DEFAULT_TOP_K,
    MAX_NO_REPEAT_NGRAM,
    Sampling,
    SearchConfig,
)
from model.errors import ConfigError, DataError, shown
from model.text.constraints.control import MAX_PREFIX_CHARACTERS, Control
from model.text.constraints.glossary import MAX_ENTRIES, MAX_TERM_CHARACTERS, Entry, Glossary
from model.text.sentences.segmenter import LINE_BREAKS

_MAX_BYTES = 4 * MAX_ENTRIES * 2 * (MAX_TERM_CHARACTERS + 1)


def add_control_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--prefix", metavar="TEXT", help="what every line's translation begins with"
    )
    parser.add_argument(
        "--glossary",
        type=Path,
        metavar="FILE",
        help="what terms have to be translated as: a line each, the term, a tab, its translation",
    )
    parser.add_argument(
        "--temperature", type=float, help="draw translations at random instead of searching"
    )
    parser.add_argument(
        "--top-k", type=int, help=f"draw of so many of the likeliest tokens ({DEFAULT_TOP_K})"
    )
    parser.add_argument(
        "--top-p", type=float, help="draw of the fewest tokens whose probabilities sum up to this"
    )
    parser.add_argument("--seed", type=int, help="of what is drawn (0)")
    parser.add_argument(
        "--beam-groups",
        type=int,
        help="divide the beam into so many groups, each of which avoids what those before it have"
        " just written; --beam-size is a multiple of it",
    )
    parser.add_argument(
        "--diversity-penalty",
        type=float,
        help="what a token costs a group for each hypothesis of those before it that has just"
        f" chosen it ({DEFAULT_DIVERSITY_PENALTY})",
    )
    parser.add_argument(
        "--no-repeat-ngram",
        type=int,
        default=0,
        help=f"so many tokens in a row, up to {MAX_NO_REPEAT_NGRAM}, come in no sentence's"
        " translation twice (0: they may)",
    )


def controlled(search: SearchConfig, arguments: argparse.Namespace) -> SearchConfig:
    """The search as flags want it: drawn, divided, without n-grams that come again.

    Raises:
        ConfigError: No search can be all of it.
    """
    search = divided(drawn(search, arguments), arguments)
    return replace(search, no_repeat_ngram=arguments.no_repeat_ngram)


def drawn(search: SearchConfig, arguments: argparse.Namespace) -> SearchConfig:
    """The search, or as many draws as it has beams, of which the likeliest stands.

    Raises:
        ConfigError: Nothing can be drawn so.
    """
    names = ("temperature", "top_k", "top_p", "seed")
    values = {name: getattr(arguments, name) for name in names}
    asked = {name: value for name, value in values.items() if value is not None}
    if not asked:
        return search
    if set(asked) == {"seed"}:
        raise ConfigError("--seed needs --temperature, --top-k or --top-p: nothing is drawn")
    return replace(search, sampling=Sampling(**asked))


def divided(search: SearchConfig, arguments: argparse.Namespace) -> SearchConfig:
    """The search, by groups of beams where flags ask for them.

    Raises:
        ConfigError: The beam cannot be divided so.
    """
    num, penalty = arguments.beam_groups, arguments.diversity_penalty
    if num is None and penalty is None:
        return search
    if num is None or num < 2:
        given = "is not given" if num is None else f"is {num}"
        raise ConfigError(f"--beam-groups {given}; a beam is divided into at least 2 groups")
    if search.beam_size % num:
        raise ConfigError(
            f"--beam-size is {search.beam_size}; it must be a multiple of --beam-groups ({num})"
        )
    penalty = DEFAULT_DIVERSITY_PENALTY if penalty is None else penalty
    return replace(search, num_groups=num, diversity_penalty=penalty)


def chosen_control(arguments: argparse.Namespace) -> Control:
    """What is wanted of every line's translation.

    Raises:
        ConfigError: The prefix is too long, more than a line, or not UTF-8.
        DataError: The glossary cannot be read.
    """
    prefix = arguments.prefix or ""
    if len(prefix) > MAX_PREFIX_CHARACTERS:
        raise ConfigError(
            f"--prefix has {len(prefix)} characters; it may have {MAX_PREFIX_CHARACTERS}"
        )
    if not set(LINE_BREAKS).isdisjoint(prefix):
        raise ConfigError(f"--prefix is {shown(prefix)}; it must be one line, without tabs")
    try:
        prefix.encode(errors="surrogateescape").decode()
    except UnicodeDecodeError as error:
        problem = f"{error.reason} at byte {error.start + 1}"
        raise ConfigError(f"--prefix is not valid UTF-8 ({problem})") from error
    glossary = None if arguments.glossary is None else read_glossary(arguments.glossary)
    return Control(target_prefix=prefix, glossary=glossary)


def read_glossary(path: Path) -> Glossary:
    """The glossary of a file: a line each, the term, a tab, and what stands for it.

    Raises:
        DataError: It cannot be read, or a line of it is no entry.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    if len(content) > _MAX_BYTES:
        raise DataError(f"{path}: has more than {_MAX_BYTES} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not valid UTF-8 (at byte {error.start})") from error
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(lines) > MAX_ENTRIES:
        raise DataError(f"{path}: has {len(lines)} entries; it may have {MAX_ENTRIES}")
    return Glossary([_entry(line, f"{path}:{number}") for number, line in lines])


def _entry(line: str, place: str) -> Entry:
    terms = [term.strip() for term in line.split("\t")]
    if len(terms) != 2 or not all(terms):
        raise DataError(f"{place}: {shown(line)} is not a term, a tab and what stands for it")
    longest = max(map(len, terms))
    if longest > MAX_TERM_CHARACTERS:
        raise DataError(
            f"{place}: a term has {longest} characters; it may have {MAX_TERM_CHARACTERS}"
        )
    return Entry(source=terms[0], target=terms[1])
