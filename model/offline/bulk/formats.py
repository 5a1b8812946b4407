"""The formats of bulk jobs, and which one a file is of.

Owns the list. A packed file cannot be divided, so it is of none.
"""

from collections.abc import Sequence

from model.documents.kinds import kind_of
from model.errors import DataError
from model.offline.bulk.blocks import Format
from model.offline.bulk.lines import JsonLinesFormat, TextFormat
from model.offline.bulk.parquet import ParquetFormat
from model.offline.bulk.separated import SeparatedFormat

FORMATS: tuple[Format, ...] = (
    ParquetFormat(),
    JsonLinesFormat(),
    SeparatedFormat("csv"),
    SeparatedFormat("tsv"),
    TextFormat(),
)

_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")


def format_of(name: str) -> Format | None:
    """The format of a file by the ending of its name; None if it has none of ours."""
    return next((one for one in FORMATS if name.lower().endswith(one.endings)), None)


def format_named(name: str) -> Format:
    """The format that a job's manifest names."""
    return next(one for one in FORMATS if one.name == name)


def common_format(names: Sequence[str]) -> Format:
    """The one format of all files.

    Raises:
        DataError: One has none, or they have several.
    """
    found: dict[str, Format] = {}
    for name in names:
        one = format_of(name)
        if one is None:
            endings = ", ".join(ending for known in FORMATS for ending in known.endings)
            is_packed = name.lower().endswith(_PACKED)
            hint = "a packed file cannot be divided into blocks: unpack it; " if is_packed else ""
            is_document = kind_of(name.removesuffix(".gz")) is not None
            instead = "; for one document: --output FILE, and no OUTPUT" if is_document else ""
            raise DataError(f"{name}: {hint}a bulk job reads {endings}{instead}")
        found[one.name] = one
    if len(found) > 1:
        raise DataError(
            f"{names[0]} and others are of {len(found)} formats ({', '.join(sorted(found))});"
            " a job has one: name its files by a pattern, such as 'folder/*.csv'"
        )
    return next(iter(found.values()))
