"""`dragoman convert`: a checkpoint from a model of another program.

Owns the flags, the progress bar and the printing. The formats are `model.exchange.imports`'.
"""

import argparse
import shlex
import sys
from pathlib import Path
from typing import get_args

from model.errors import ConfigError, ForeignModelError, InputError
from model.exchange.imports.language_tokens import FAMILIES
from model.exchange.imports.languages import typed_tag
from model.exchange.imports.problems import NAME_DIRECTIONS
from model.system.paths import as_text

HELP = "make a checkpoint of a model of another program (Hugging Face, Marian, CTranslate2, …)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("source", type=Path, help="folder, file or archive of the model")
    parser.add_argument(
        "destination", type=Path, help="checkpoint directory to write, which must not exist yet"
    )
    parser.add_argument(
        "--compute",
        choices=("int8", "float16", "bfloat16", "float32"),
        default="int8",
        help="how matrices are stored (int8)",
    )
    parser.add_argument("--name", help="name of the checkpoint (as the source is called)")
    parser.add_argument(
        "--licence", metavar="SPDX", help="licence of the weights (as the source says)"
    )
    parser.add_argument(
        "--from",
        dest="source_languages",
        metavar="TAGS",
        help="source languages, with commas between them, where the source does not say them or"
        " not all are wanted (de,fr)",
    )
    parser.add_argument(
        "--to", dest="target_languages", metavar="TAGS", help="target languages, likewise"
    )
    add_family_argument(parser)


def add_family_argument(parser: argparse.ArgumentParser) -> None:
    """Add the flag that says what the files of a multilingual network do not."""
    parser.add_argument(
        "--family",
        choices=tuple(FAMILIES),
        help="of a multilingual CTranslate2 directory, or of M2M100 or SMaLL-100, where the files"
        " do not say how it is asked for a language",
    )


def run(arguments: argparse.Namespace) -> int:
    """Convert, print where.

    Raises:
        ForeignModelError: The source cannot be converted; every problem is told.
        CheckpointError: The destination exists or cannot be written.
        ConfigError: The flags are impossible.
    """
    pairs = _pairs(arguments.source_languages, arguments.target_languages)
    from tqdm import tqdm

    from model.exchange.imports.convert import StoredType, convert
    from model.exchange.imports.formats import IMPORTERS
    from model.exchange.imports.imported import ImportOptions

    assert arguments.compute in get_args(StoredType)
    with tqdm(
        unit=" weights", unit_scale=True, disable=not sys.stderr.isatty(), file=sys.stderr
    ) as bar:

        def show(written: int, total: int) -> None:
            bar.total = total
            bar.update(written - bar.n)

        convert(
            arguments.source,
            arguments.destination,
            importers=IMPORTERS,
            compute=arguments.compute,
            name=arguments.name,
            licence=arguments.licence,
            options=ImportOptions(pairs=pairs, family=arguments.family),
            command=_command(arguments),
            progress=show,
        )
    print(as_text(arguments.destination))
    return 0


def print_error(error: ForeignModelError | Exception | str) -> None:
    """One line, or, of a model with several problems, one line for each."""
    print_problems(error, naming_directions="--from and --to, such as --from de --to en,fr")


def print_problems(error: ForeignModelError | Exception | str, *, naming_directions: str) -> None:
    """One line, or one for each problem, for people who have a command's flags.

    Args:
        error: What is told.
        naming_directions: The flags that do, for a problem that asks for them.
    """
    lines = [f"dragoman: {error}"]
    if isinstance(error, ForeignModelError) and len(error.problems) > 1:
        lines = [f"dragoman: {error.path} cannot be converted:"]
        lines += [f"  {problem}" for problem in error.problems]
    for line in lines:
        named = line.replace(NAME_DIRECTIONS, f"{NAME_DIRECTIONS} ({naming_directions})")
        print(named, file=sys.stderr)


def _pairs(sources: str | None, targets: str | None) -> tuple[tuple[str, str], ...]:
    """Every source with every other target."""
    if (sources is None) != (targets is None):
        raise ConfigError("--from and --to go together")
    if sources is None or targets is None:
        return ()
    pairs = [
        (source, target)
        for source in _tags("--from", sources)
        for target in _tags("--to", targets)
        if source != target
    ]
    if not pairs:
        raise ConfigError(f"--from is {sources} and --to is {targets}; they leave no direction")
    return tuple(pairs)


def _tags(flag: str, words: str) -> list[str]:
    try:
        return list(dict.fromkeys(typed_tag(word.strip()) for word in words.split(",")))
    except InputError as error:
        raise ConfigError(f"{flag}: {error}") from error


def _command(arguments: argparse.Namespace) -> str:
    """What makes the same checkpoint again, with the names of folders and not their places."""
    names = (as_text(path.name) for path in (arguments.source, arguments.destination))
    words = ["dragoman", "convert", *names]
    words += ["--compute", arguments.compute]
    for flag, value in (
        ("--name", arguments.name),
        ("--licence", arguments.licence),
        ("--from", arguments.source_languages),
        ("--to", arguments.target_languages),
        ("--family", arguments.family),
    ):
        words += [] if value is None else [flag, value]
    return shlex.join(words)
