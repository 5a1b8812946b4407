"""Process that opens or rebuilds one document, within bounds of memory, time and file size.

Owns these bounds and how it ends. Documents are strangers' files, read by parsers in C and rules of
many kinds: whatever one of them makes of a file, it does to this process alone. It is started anew
for each file by `service.documents.process`, which owns the meaning of its exit status, and
imports nothing of the server.
"""

import contextlib
import errno
import json
import os
import resource
import signal
import sys
from pathlib import Path

from model.documents.formats import open_document
from model.documents.notation.document import Document
from model.errors import DocumentError, InputError
from model.text.marks.inline_codes import without_codes

MAX_MEMORY_BYTES = 2 * 1024**3
"""Of address space, of which the interpreter takes a part."""
MAX_CPU_SECONDS = 120
MAX_FILE_BYTES = 512 * 1024**2
"""Of what it writes."""
REFUSED_STATUS = 3
"""The document is at fault; why is on standard output."""
DISK_STATUS = 4
"""The disk is at fault; the number of its error is on standard output."""
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)
_NICENESS = 10
_OOM_SCORE = Path("/proc/self/oom_score_adj")


def main(arguments: list[str]) -> int:
    """Run `open KIND SOURCE TEXTS MAX_CHARACTERS` or `rebuild KIND SOURCE TRANSLATIONS RESULT TAG`.

    An empty tag of the translations' language leaves what a document says of its own.
    """
    action, kind, source, *paths = arguments
    _bound()
    try:
        document = open_document(Path(source).read_bytes(), kind)
        if action == "open":
            _write_texts(document, Path(paths[0]), max_characters=int(paths[1]))
        else:
            _write_result(document, Path(paths[0]), Path(paths[1]), language=paths[2] or None)
    except (DocumentError, InputError) as error:
        return _ended(REFUSED_STATUS, str(error))
    except MemoryError:
        reason = f"the {kind} document takes more memory than there is for one"
        return _ended(REFUSED_STATUS, reason)
    except RecursionError:
        return _ended(REFUSED_STATUS, f"the {kind} document is nested too deeply")
    except OSError as error:
        if error.errno not in _DISK_ERRORS:
            raise
        return _ended(DISK_STATUS, str(error.errno))
    return 0


def _bound() -> None:
    os.nice(_NICENESS)
    with contextlib.suppress(
        OSError
    ):  # where memory runs out, this process goes and not the engine
        _OOM_SCORE.write_text("1000")
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    for bound, limit in (
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_CPU, MAX_CPU_SECONDS),
        (resource.RLIMIT_FSIZE, MAX_FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(bound)
        soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        # A system that knows no such limit has no such bound.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(bound, (soft, hard))


def _write_texts(document: Document, path: Path, *, max_characters: int) -> None:
    num_characters = sum(len(without_codes(text)) for text in document.texts)
    if num_characters > max_characters:
        raise DocumentError(
            document.kind,
            f"has {num_characters} characters; at most {max_characters} are translated",
        )
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("w", encoding="ascii") as file:
            json.dump(list(document.texts), file)
    except OSError:
        partial.unlink(missing_ok=True)  # a full disk has no room for it
        raise
    partial.replace(path)  # whole, or not there


def _write_result(
    document: Document, translations: Path, result: Path, *, language: str | None
) -> None:
    texts: list[str] = []
    if document.texts:  # otherwise nobody has written any
        with translations.open(encoding="ascii") as lines:
            texts = [json.loads(line) for line in lines]
    result.write_bytes(document.rebuild(texts, language))


def _ended(status: int, reason: str) -> int:
    sys.stdout.buffer.write(reason.encode("utf-8", "replace"))
    sys.stdout.flush()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
