"""`python -m benchmarks.document_libraries`: what is lost of a file that nobody changed?

Reads files of every format (made by the formats' libraries, LibreOffice, GNU gettext and by hand;
more by `--files`) with the format's own library and writes them again unchanged; the same with
ours, and with ours after every text was put in capitals. Counts what is gone: members, elements,
attributes, comments, lines. Then asks which texts of a document of Word are found, which texts of
catalogues and subtitles libraries read otherwise, how long readers of subtitles take for digits
that are no file, and whether polib takes a catalogue for a file's name. Wants `soffice` and
`msgunfmt` for their files. Prints a row each and writes
benchmarks/results/document-libraries-<time>.json.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import polib
import srt

from benchmarks.document_libraries.files import File, files
from benchmarks.document_libraries.libraries import LIBRARIES
from benchmarks.document_libraries.losses import Losses, losses
from benchmarks.document_libraries.reach import reach
from benchmarks.document_libraries.reading import reading
from benchmarks.machine import describe_command, describe_machine
from benchmarks.results_file import RESULTS, write_result
from model.documents.formats import open_document
from model.errors import DocumentError

_NUM_DIGITS = (250, 500, 1_000)
_COLUMNS = tuple(one.name for one in fields(Losses))


def unchanged(kind: str, data: bytes) -> bytes:
    """A file that ours has read and written again."""
    document = open_document(data, kind)
    return document.rebuild(document.texts)


def in_capitals(kind: str, data: bytes) -> bytes:
    """A file whose texts a translator has put in capitals."""
    document = open_document(data, kind)
    return document.rebuild([text.upper() for text in document.texts])


def compared(found: Sequence[File]) -> list[dict[str, object]]:
    """A row for every format, maker and way of reading and writing."""
    rows: dict[tuple[str, str, str], Losses] = {}
    for file in found:
        name, again = LIBRARIES[file.kind]
        ways: dict[str, Callable[[bytes], bytes]] = {
            name: again,
            "ours": partial(unchanged, file.kind),
            "ours, in capitals": partial(in_capitals, file.kind),
        }
        for way, write in ways.items():
            row = (file.kind, file.maker, way)
            lost = losses(file.kind, file.data, _written(write, file.data))
            rows[row] = rows.get(row, Losses()) + lost
    return [
        {"format": kind, "made_by": maker, "written_by": way, **asdict(lost)}
        for (kind, maker, way), lost in rows.items()
    ]


def _written(write: Callable[[bytes], bytes], data: bytes) -> bytes | None:
    """What was written; None if a file cannot be read, which is a figure too."""
    try:
        return write(data)
    except Exception as error:  # whatever a library says of a file
        print(f"failed: {type(error).__name__}: {error}", file=sys.stderr)
        return None


def digit_seconds(read: Callable[[str], object]) -> dict[int, float]:
    """Seconds for so many digits."""
    found = {}
    for number in _NUM_DIGITS:
        begin = time.perf_counter()
        with suppress(DocumentError, srt.SRTParseError):
            read("1" * number)
        found[number] = round(time.perf_counter() - begin, 3)
    return found


def reads_named_file() -> bool:
    """Whether polib takes a catalogue that is a path for the file of that name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "secret.po"
        path.write_text('msgid "secret"\nmsgstr ""\n', encoding="utf-8")
        return [one.msgid for one in polib.pofile(str(path))] == ["secret"]


def versions() -> dict[str, str]:
    """Of the libraries that are packages."""
    found = {}
    for name in sorted({name for name, _ in LIBRARIES.values()} | {"xlsxwriter"}):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.document_libraries",
        description=(__doc__ or "").splitlines()[0],
    )
    parser.add_argument("--most", type=int, default=40, help="files of a maker (%(default)s)")
    parser.add_argument("--files", type=Path, nargs="*", default=[], help="further files")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    """Make files, compare, print, write."""
    arguments = parse_arguments(words)
    started, clock = datetime.now(UTC), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "made"
        folder.mkdir()
        found = list(files(folder, most=arguments.most))
    found += [
        File(kind=path.suffix[1:], maker="others", data=path.read_bytes(), name=path.name)
        for path in arguments.files
    ]
    rows = compared(found)
    print(f"{'':40} {' '.join(f'{column[:10]:>10}' for column in _COLUMNS)}")
    for row in rows:
        title = f"{row['format']:5} {row['made_by']:12} {row['written_by']}"
        print(f"{title:40} {' '.join(f'{row[column]:>10}' for column in _COLUMNS)}")
    result = {
        "benchmark": "document-libraries",
        "command": describe_command("benchmarks.document_libraries", words),
        "started": started.isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "libraries": versions(),
        "rows": rows,
        "seconds_for_digits": {
            "srt": digit_seconds(lambda text: list(srt.parse(text))),
            "ours": digit_seconds(lambda text: open_document(text.encode(), "srt")),
        },
        "texts_found_in": reach(),
        "reading": reading(found),
        "polib_reads_the_file_that_a_text_names": reads_named_file(),
        "wall_seconds": round(time.monotonic() - clock, 1),
    }
    print(json.dumps({name: result[name] for name in list(result)[-5:]}, indent=1))
    path = write_result(arguments.results, "document-libraries", started, result)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
