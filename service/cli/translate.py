"""`dragoman translate`: a file or standard input to standard output or a file, line by line.

Owns the flags, the reading and the order of things. The translating is `model.offline.translator`,
which decodes exactly as the server does; an output file is `service.cli.line_output`'s, and what it
must not be `service.cli.read_files`'s.
"""

import argparse
import gzip
import hashlib
import os
import stat
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from model.errors import DataError
from model.system.paths import exists, is_file, is_folder
from service.cli.directions import Direction, check_unreplaced, chosen_or_same
from service.cli.line_output import LineOutput, opened_output
from service.cli.offline import (
    MAX_ROWS,
    add_search_arguments,
    check_count,
    chosen_search,
    opened_translator,
    set_threads,
)
from service.cli.read_files import STANDARD_INPUT, ReadFiles
from service.cli.signals import leaving_at_once

if TYPE_CHECKING:
    from model.config import SearchConfig
    from model.offline.translator import Translator
    from model.text.segments import Translation

HELP = "translate a file or standard input, line by line"

_LINES_AT_ONCE = 2_000
_LINES_AT_ONCE_TO_A_FILE = 4_000  # the first is not waited for: fuller batches


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        metavar="FILE",
        help="UTF-8 text or .gz, - for standard input",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="write here, .gz is packed; the file appears when it is whole, and the same command"
        " goes on where it was interrupted",
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FOLDER",
        help="a checkpoint, or a folder of several, of which --from and --to choose one"
        " (DRAGOMAN_CHECKPOINT, else the bundled ones)",
    )
    add_search_arguments(parser)
    parser.add_argument(
        "--nearest-to",
        metavar="REFERENCE",
        help="of each line's beam, write the translation nearest to this file's line by chrF, as a"
        " student's text",
    )
    parser.add_argument(
        "--max-rows", type=int, default=128, help="beam rows decoded at once (%(default)s)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Translate; output line n is input line n, as it is if it is to stay in its language.

    Raises:
        CheckpointError: The checkpoint cannot be used.
        ConfigError: The languages or the search are impossible.
        DataError: The input cannot be read or is not UTF-8.
    """
    search = chosen_search(arguments)
    check_count("--max-rows", arguments.max_rows, MAX_ROWS)
    direction = chosen_or_same(arguments, arguments.checkpoint)
    if direction is None:
        return _copy(arguments)
    names = [name for name in (arguments.file, arguments.nearest_to) if name is not None]
    read = ReadFiles(names, folders=[direction.directory])
    read.refuse_streams()
    with leaving_at_once():
        import tqdm  # noqa: F401  # later, where nothing must swallow Ctrl-C

        from model.checkpoint.checksums import fingerprint, unreplaced
        from model.loading import load_for_decoding
        from model.offline.translator import Translator  # noqa: F401  # later, and Ctrl-C would be swallowed
        from model.system.devices import resolve_device

    set_threads(arguments)
    device = resolve_device(arguments.device)
    with unreplaced(direction.directory):
        checkpoint = load_for_decoding(
            direction.directory,
            device=device,
            compute_type=arguments.compute_type,
            with_shortlist=arguments.shortlist,
        )
        name = fingerprint(direction.directory)
    check_unreplaced(direction, checkpoint.manifest)
    max_rows = max(arguments.max_rows, search.beam_size)
    translator = opened_translator(
        direction.directory, checkpoint, device=device, max_rows=max_rows
    )
    with ExitStack() as stack:
        output = identity = None
        if arguments.output is not None:
            facts = [name, direction.pair, search, checkpoint.compute_type]
            facts += ["shortlist"] if arguments.shortlist else []
            identity = _identity(names, *facts)
            output = stack.enter_context(opened_output(arguments.output, identity, read=read))
        stack.enter_context(_reporting_interruption(output, is_kept=identity is not None))
        texts = [stack.enter_context(_opened(name)) for name in names]
        work = _Work(translator, direction, search)
        _translate(texts, work, output, arguments)
    work.report()
    return 0


def _copy(arguments: argparse.Namespace) -> int:
    """Write every line as it is: both flags mean one language."""
    read = ReadFiles([arguments.file], folders=[])
    read.refuse_streams()
    with ExitStack() as stack:
        output = None
        if arguments.output is not None:
            identity = _identity([arguments.file], "unchanged")
            output = stack.enter_context(opened_output(arguments.output, identity, read=read))
        text = stack.enter_context(_opened(arguments.file))
        _translate([text], _Unchanged(), output, arguments)
    return 0


def _translate(
    texts: Sequence[TextIO],
    work: "_Work | _Unchanged",
    output: LineOutput | None,
    arguments: argparse.Namespace,
) -> None:
    """Translate the first text; where there is a second one, nearest to its lines."""
    from tqdm import tqdm

    rows = _rows(texts, arguments)
    with tqdm(unit=" segments", disable=not sys.stderr.isatty(), file=sys.stderr) as bar:

        def translated(chunk: Sequence[tuple[str, str]]) -> Iterator[tuple[int, str]]:
            return work.lines(chunk, is_nearest=len(texts) > 1, advance=bar.update)

        if output is None:
            while chunk := list(islice(rows, _LINES_AT_ONCE)):
                found = dict(translated(chunk))
                sys.stdout.writelines(f"{found[index]}\n" for index in range(len(chunk)))
                sys.stdout.flush()
            return
        _pass_over(rows, output.num_done, arguments)
        while chunk := list(islice(rows, _LINES_AT_ONCE_TO_A_FILE)):
            first = output.num_done
            missing = [index for index in range(len(chunk)) if first + index not in output.ahead]
            for index, line in translated([chunk[index] for index in missing]):
                output.keep(first + missing[index], line)
            output.settle(len(chunk))


@contextmanager
def _reporting_interruption(output: LineOutput | None, *, is_kept: bool) -> Iterator[None]:
    """Print, when the command is interrupted, what is written and how to go on."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if output is None:
            left = "with --output FILE, the same command goes on where it was interrupted"
        elif is_kept:
            left = (
                f"{output.num_lines} lines are kept beside {output.path}; the same command goes on"
                " from there"
            )
        else:
            left = "nothing is kept, because the input is a pipe and passes once"
        print(f"dragoman: interrupted; {left}", file=sys.stderr)
        raise


@dataclass(frozen=True, slots=True)
class _Work:
    """Translation of rows from one language to the other by one search."""

    translator: "Translator"
    direction: Direction
    search: "SearchConfig"
    failures: Counter[str] = field(default_factory=Counter)

    def lines(
        self,
        rows: Sequence[tuple[str, str]],
        *,
        is_nearest: bool,
        advance: Callable[[int], object],
    ) -> Iterator[tuple[int, str]]:
        """Each row's line when it is ready: the row's index, and the line.

        Args:
            rows: Sources with their references.
            is_nearest: Choose from each line's beam what is nearest to its reference.
            advance: Called with numbers of segments that are done.
        """
        from model.offline.evaluate import nearest

        translator, pair = self.translator, self.direction.pair
        sources = [source for source, _ in rows]
        if not is_nearest:
            each = translator.translate_each(sources, pair, self.search, on_finished=advance)
            for index, translation in each:
                self.count(translation)
                yield index, translation.text
            return
        wide = replace(self.search, num_hypotheses=self.search.beam_size)
        for index, found in translator.alternatives_each(sources, pair, wide, on_finished=advance):
            self.count(found[0])
            yield index, nearest([one.text for one in found], rows[index][1])

    def count(self, translation: "Translation") -> None:
        """Count the segments of a translation of which checks failed, by check."""
        for segment in translation.segments:
            self.failures.update(segment.quality.failed)

    def report(self) -> None:
        """Print how many checks failed, if any did."""
        if self.failures:
            counts = ", ".join(f"{name} {count}" for name, count in self.failures.most_common())
            print(
                f"dragoman: warning: segments that may be wrong, by check: {counts}",
                file=sys.stderr,
            )


class _Unchanged:
    """Rows that stay as they are."""

    def lines(
        self,
        rows: Sequence[tuple[str, str]],
        *,
        is_nearest: bool,  # noqa: ARG002  # as `_Work` has it
        advance: Callable[[int], object],
    ) -> Iterator[tuple[int, str]]:
        """Each row's source."""
        for index, (source, _) in enumerate(rows):
            advance(1)
            yield index, source


def _pass_over(
    rows: Iterator[tuple[str, str]], num_done: int, arguments: argparse.Namespace
) -> None:
    if sum(1 for _ in islice(rows, num_done)) < num_done:
        raise DataError(
            f"{arguments.output}: an interrupted command has left {num_done} lines of it, more than"
            f" {arguments.file} has; remove its .partial file"
        )


def _rows(texts: Sequence[TextIO], arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Each line with its reference, which is empty where there is no text of them."""
    lines = _lines(texts[0], arguments.file)
    if len(texts) == 1:
        yield from ((line, "") for line in lines)
        return
    reference_lines = _lines(texts[1], arguments.nearest_to)
    for number, (line, reference) in enumerate(zip_longest(lines, reference_lines), start=1):
        if line is None or reference is None:
            shorter = arguments.file if line is None else arguments.nearest_to
            raise DataError(
                f"{shorter}:{number}: no such line; {arguments.file} and {arguments.nearest_to}"
                " need the same number of lines"
            )
        text = reference if number > 1 else reference.removeprefix("\ufeff")
        yield line, text.rstrip("\r")  # as `evaluate` and training read it


def _identity(names: Sequence[str], *facts: object) -> str | None:
    """Digest of everything the output depends on; None for a pipe, which passes once.

    Args:
        names: Of the files that are read.
        facts: The checkpoint's fingerprint, the pair, the search and the arithmetic.

    Raises:
        DataError: A file cannot be read.
    """
    digests = []
    for name in names:
        try:
            digest = _standard_input_digest() if name == STANDARD_INPUT else _digest(Path(name))
        except OSError as error:
            raise DataError(f"{name}: {error.strerror}") from error
        if digest is None:
            return None
        digests.append(digest)
    return hashlib.sha256(" ".join([repr(facts), *digests]).encode()).hexdigest()[:16]


def _digest(path: Path) -> str | None:
    if _is_pipe(path):
        return None
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _standard_input_digest() -> str | None:
    """Digest of what is still to be read, if that can be read twice."""
    number = sys.stdin.fileno()
    if not stat.S_ISREG(os.fstat(number).st_mode):
        return None
    start = os.lseek(number, 0, os.SEEK_CUR)
    try:
        with open(number, "rb", closefd=False) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    finally:
        os.lseek(number, start, os.SEEK_SET)


def _is_pipe(path: Path) -> bool:
    return exists(path) and not is_file(path) and not is_folder(path)


def _opened(name: str) -> TextIO:
    """The input, with line feeds as the only line ends, so that nothing else is touched."""
    source: int | str = sys.stdin.fileno() if name == "-" else name
    try:
        if name.endswith(".gz"):
            return gzip.open(name, "rt", encoding="utf-8", newline="\n")
        return open(source, encoding="utf-8", newline="\n", closefd=name != "-")
    except OSError as error:
        raise DataError(f"{name}: {error.strerror}") from error


def _lines(stream: TextIO, name: str) -> Iterator[str]:
    try:
        for line in stream:
            yield line.removesuffix("\n")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}: not valid UTF-8 ({error.reason} at byte {error.start})"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name}: {error}") from error
