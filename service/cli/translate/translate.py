"""`dragoman translate`: a text, a file or standard input, line by line.

Owns the flags and the order of things. The translating is `model.offline.translator`, which decodes
exactly as the server does; lines that are read are `service.cli.streams.line_input`'s, those that
are written `service.cli.streams.line_output`'s, what must not be written
`service.cli.streams.read_files`'s, what is no text of lines `service.cli.translate.documents`'s,
and tables and folders `service.cli.translate.bulk`'s.
"""

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from model.errors import ConfigError, DataError, shown
from model.text.constraints.control import Control
from service.cli.arguments.control import add_control_arguments, chosen_control, controlled
from service.cli.arguments.directions import Direction, chosen_or_same
from service.cli.arguments.offline import (
    MAX_ROWS,
    add_search_arguments,
    check_count,
    chosen_search,
    chosen_threads,
)
from service.cli.arguments.opening import Opened, opened_by_flags
from service.cli.signals import leaving_at_once
from service.cli.streams.line_input import (
    THE_TEXT,
    Input,
    OpenedLines,
    digest,
    named_input,
    num_lines,
    ready_rows,
    sample,
)
from service.cli.streams.line_output import LineOutput, opened_output
from service.cli.streams.read_files import STANDARD_INPUT, ReadFiles
from service.cli.translate.bulk import add_bulk_arguments, is_bulk, run_bulk
from service.cli.translate.documents import (
    add_format_argument,
    check_output,
    document_facts,
    document_sample,
    maker,
    opened_document,
    translate_document,
)

if TYPE_CHECKING:
    from model.config import SearchConfig
    from model.documents.notation.document import Document
    from model.offline.translator import Translator
    from model.text.drafts.segments import Translation

HELP = "translate a text, a document, or a file or standard input line by line"

_LINES_AT_ONCE = 2_000
_LINES_AT_ONCE_TO_A_FILE = 4_000  # the first is not waited for: fuller batches


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "file",
        nargs="?",
        metavar="TEXT|FILE",
        help="a text, or a file with one, UTF-8, or a document such as .docx or .html, packed if it"
        " ends in .gz; - or nothing for standard input",
    )
    add_bulk_arguments(parser)
    parser.add_argument("--text", help="a text, whatever files have its name")
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
    add_format_argument(parser)
    add_search_arguments(parser)
    add_control_arguments(parser)
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
        ConfigError: The languages, the search or what is wanted of it are impossible.
        DataError: The input cannot be read or is not UTF-8.
    """
    if is_bulk(arguments):
        return run_bulk(arguments)
    search = controlled(chosen_search(arguments), arguments)
    control = chosen_control(arguments)
    check_count("--max-rows", arguments.max_rows, MAX_ROWS)
    source = _chosen_input(arguments)
    document = opened_document(source, arguments)
    looked_at = partial(sample, source) if document is None else partial(document_sample, document)
    direction = chosen_or_same(
        arguments, arguments.checkpoint, sample=looked_at, is_whole=source.text is not None
    )
    if direction is None:
        return _copy(source, document, arguments)
    inputs = [source] + [Input(name) for name in [arguments.nearest_to] if name is not None]
    read = _checked_files(inputs, document, arguments, folders=[direction.directory])
    with leaving_at_once():
        if sys.stderr.isatty():
            import tqdm  # noqa: F401  # later, where nothing must swallow Ctrl-C

    num_threads = chosen_threads(arguments)
    max_rows = max(arguments.max_rows, search.beam_size)
    opened = opened_by_flags(direction, arguments, num_threads=num_threads, max_rows=max_rows)
    work = _Work(opened.translator, direction, search, control)
    with ExitStack() as stack:
        output = identity = None
        if arguments.output is not None:
            facts = _facts(opened, work, document, with_shortlist=arguments.shortlist)
            identity = _identity(inputs, *facts, has_lines=document is None)
            language = direction.pair.target
            output = stack.enter_context(
                _opened(arguments.output, identity, read, document, language)
            )
        unit = "lines" if document is None else "texts"
        stack.enter_context(
            _reporting_interruption(output, is_kept=identity is not None, unit=unit)
        )
        if document is None:
            _translate(inputs, work, output)
        else:
            translate_document(document, work, output, language=direction.pair.target)
    work.report()
    return 0


def _checked_files(
    inputs: Sequence[Input],
    document: "Document | None",
    arguments: argparse.Namespace,
    *,
    folders: Iterable[Path] = (),
) -> ReadFiles:
    """All that is not to be written over, whether the languages have it read or not.

    Raises:
        ConfigError: As of `check_output`.
        DataError: It would be.
    """
    beside = [name for name in (arguments.glossary, arguments.nearest_to) if name is not None]
    read = ReadFiles([*(file for one in inputs for file in one.files), *beside], folders=folders)
    read.refuse_streams()
    if arguments.output is not None:
        read.refuse(arguments.output, arguments.output)
        check_output(arguments.output, document, inputs[0], asked=arguments.format)
    return read


def _facts(
    opened: Opened, work: "_Work", document: "Document | None", *, with_shortlist: bool
) -> list[object]:
    """All that the lines of an output depend on beside the inputs."""
    control = work.control
    facts: list[object] = [opened.fingerprint, work.direction.pair, work.search]
    facts += [opened.compute_type, control.target_prefix]
    facts += [] if control.glossary is None else [control.glossary.entries]
    facts += ["shortlist"] if with_shortlist else []
    return [*facts, *document_facts(document)]


def _opened(
    path: Path,
    identity: str | None,
    read: ReadFiles,
    document: "Document | None",
    language: str | None = None,
) -> AbstractContextManager[LineOutput]:
    """The output of lines, or of the texts of a document, which becomes one in that language."""
    make = None if document is None else maker(document, language, is_packed=path.suffix == ".gz")
    return opened_output(path, identity, read=read, make=make)


def _chosen_input(arguments: argparse.Namespace) -> Input:
    """What is to be translated.

    Raises:
        ConfigError: There is a text and a file.
        DataError: What looks like the name of a file is none.
    """
    if arguments.text is None:
        return named_input(STANDARD_INPUT if arguments.file is None else arguments.file)
    if arguments.file is not None:
        raise ConfigError(f"--text is given, and {shown(arguments.file)} as well; give one of them")
    return Input(THE_TEXT, arguments.text)


def _copy(source: Input, document: "Document | None", arguments: argparse.Namespace) -> int:
    """Write every line as it is: it is in the language that is asked for."""
    read = _checked_files([source], document, arguments)
    with ExitStack() as stack:
        output = None
        if arguments.output is not None:
            facts = document_facts(document)
            identity = _identity([source], "unchanged", *facts, has_lines=document is None)
            output = stack.enter_context(_opened(arguments.output, identity, read, document))
        if document is None:
            _translate([source], _Unchanged(), output)
        else:
            translate_document(document, _Unchanged(), output)
    return 0


@contextmanager
def _progress(
    source: Input, num_done: int, *, is_beside_lines: bool
) -> Iterator[Callable[[], object]]:
    """A bar for somebody who watches; what is yielded is called with every line that is done.

    None where the translations themselves appear on a terminal, on the bar's own line.
    """
    if is_beside_lines or not sys.stderr.isatty():
        yield lambda: None
        return
    from tqdm import tqdm

    with tqdm(total=num_lines(source), initial=num_done, unit=" lines") as bar:
        yield bar.update


def _translate(
    inputs: Sequence[Input], work: "_Work | _Unchanged", output: LineOutput | None
) -> None:
    """Translate the first input; where there is a second one, nearest to its lines."""
    with ExitStack() as stack:
        opened = [stack.enter_context(OpenedLines(source)) for source in inputs]
        num_done = output.num_lines if output is not None else 0
        is_beside_lines = output is None and sys.stdout.isatty()
        progress = stack.enter_context(
            _progress(inputs[0], num_done, is_beside_lines=is_beside_lines)
        )
        rows = _rows(inputs, opened)

        def translated(chunk: Sequence[tuple[str, str]]) -> Iterator[tuple[int, str]]:
            for found in work.lines(chunk, is_nearest=len(inputs) > 1):
                progress()
                yield found

        if output is None:
            for chunk in ready_rows(rows, opened[0], _LINES_AT_ONCE):
                found = dict(translated(chunk))
                sys.stdout.writelines(f"{found[index]}\n" for index in range(len(chunk)))
                sys.stdout.flush()
            return
        _pass_over(rows, output.num_done, inputs[0], output)
        while chunk := list(islice(rows, _LINES_AT_ONCE_TO_A_FILE)):
            first = output.num_done
            missing = [index for index in range(len(chunk)) if first + index not in output.ahead]
            for index, line in translated([chunk[index] for index in missing]):
                output.keep(first + missing[index], line)
            output.settle(len(chunk))


@contextmanager
def _reporting_interruption(
    output: LineOutput | None, *, is_kept: bool, unit: str
) -> Iterator[None]:
    """Print, when the command is interrupted, what is written and how to go on."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if output is None:
            left = "with --output FILE, the same command goes on where it was interrupted"
        elif is_kept:
            left = (
                f"{output.num_lines} {unit} are kept beside {output.path}; the same command goes on"
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
    control: Control
    failures: Counter[str] = field(default_factory=Counter)

    def lines(
        self,
        rows: Sequence[tuple[str, str]],
        *,
        is_nearest: bool,
    ) -> Iterator[tuple[int, str]]:
        """Each row's line when it is ready: the row's index, and the line.

        Args:
            rows: Sources with their references.
            is_nearest: Choose from each line's beam what is nearest to its reference.
        """
        translator, pair = self.translator, self.direction.pair
        sources = [source for source, _ in rows]
        if not is_nearest:
            each = translator.translate_each(sources, pair, self.search, control=self.control)
            for index, translation in each:
                self.count(translation)
                yield index, translation.text
            return
        from model.offline.evaluate import nearest

        wide = replace(self.search, num_hypotheses=self.search.beam_size)
        several = translator.alternatives_each(sources, pair, wide, control=self.control)
        for index, found in several:
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
    ) -> Iterator[tuple[int, str]]:
        """Each row's source."""
        yield from enumerate(source for source, _ in rows)


def _pass_over(
    rows: Iterator[tuple[str, str]], num_done: int, source: Input, output: LineOutput
) -> None:
    if sum(1 for _ in islice(rows, num_done)) < num_done:
        raise DataError(
            f"{output.path}: an interrupted command has left {num_done} lines of it, more than"
            f" {source.name} has; remove its .partial file"
        )


def _rows(inputs: Sequence[Input], opened: Sequence[OpenedLines]) -> Iterator[tuple[str, str]]:
    """Each line with its reference, which is empty where there is no text of them."""
    if len(opened) == 1:
        yield from ((line, "") for line in opened[0])
        return
    names = [source.name for source in inputs]
    for number, (line, reference) in enumerate(zip_longest(*opened), start=1):
        if line is None or reference is None:
            shorter = names[0 if line is None else 1]
            raise DataError(
                f"{shorter}:{number}: no such line; {names[0]} and {names[1]} need the same number"
                " of lines"
            )
        text = reference if number > 1 else reference.removeprefix("\ufeff")
        yield line, text.rstrip("\r")  # as `evaluate` and training read it


def _identity(inputs: Sequence[Input], *facts: object, has_lines: bool) -> str | None:
    """Digest of everything the output depends on; None where an input can be read only once.

    Args:
        inputs: All that is read.
        facts: The checkpoint's fingerprint, the pair, the search and the arithmetic.
        has_lines: Whether the inputs are read line by line.

    Raises:
        DataError: A file cannot be read, or has lines that are not UTF-8.
    """
    digests = []
    for source in inputs:
        found = digest(source, has_lines=has_lines)
        if found is None:
            return None
        digests.append(found)
    return hashlib.sha256(" ".join([repr(facts), *digests]).encode()).hexdigest()[:16]
