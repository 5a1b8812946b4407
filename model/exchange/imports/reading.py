"""Reading of a foreign model: its importer, and what an earlier export of ours says beside it.

Owns which importer is asked, and what goes before what: a person's word, what was carried along,
what a family usually has. It knows no format, and writes nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from model.errors import ConfigError, ForeignModelError
from model.exchange.carried import read_carried
from model.exchange.imports.imported import (
    FamilyImporter,
    ImportedModel,
    Importer,
    ImportOptions,
)
from model.exchange.model_card import card_licence
from model.system.host_memory import free_memory, readable_bytes
from model.system.out_of_memory import is_out_of_memory


def recognised(content: Path, importers: Sequence[Importer], *, source: Path) -> Importer:
    """The first importer that knows what is there.

    Args:
        content: A folder or a file.
        importers: In the order in which they are asked.
        source: What an error names.

    Raises:
        ForeignModelError: None does.
    """
    for importer in importers:
        if importer.recognises(content):
            return importer
    known = ", ".join(importer.name for importer in importers)
    raise ForeignModelError(source, [f"is of no format that is known ({known})"])


def read_whole(
    importer: Importer, content: Path, options: ImportOptions, *, source: Path
) -> ImportedModel:
    """What an importer makes of it, and what the folder carries along of an earlier checkpoint.

    What a person says goes before that, and that before what a family usually has.

    Raises:
        ForeignModelError: With every problem of both.
    """
    folder = content if content.is_dir() else content.parent
    carried, problems = read_carried(folder)
    asked = options if options.pairs else replace(options, pairs=carried.tags)
    try:
        imported = _read(importer, content, asked, source=source)
    except ForeignModelError as error:
        if not problems:
            raise
        raise ForeignModelError(source, [*problems, *error.problems]) from error
    if problems:
        raise ForeignModelError(source, problems)
    return replace(
        imported,
        limits=carried.limits or imported.limits,
        licence=imported.licence or card_licence(folder) or carried.licence,
        licences=carried.licences or imported.licences,
    )


def _read(
    importer: Importer, content: Path, options: ImportOptions, *, source: Path
) -> ImportedModel:
    """What an importer makes of it, with errors that name the source and not an unpacked copy."""
    if options.family is not None and not isinstance(importer, FamilyImporter):
        problem = f"{importer.name}: its files say of which family it is; --family does not apply"
        raise ForeignModelError(source, [problem])
    try:
        with reporting_shortage(source, "while its files were read"):
            return importer.read(content, options)
    except ForeignModelError as error:
        if content == source:
            raise
        raise ForeignModelError(source, error.problems) from error
    except ConfigError as error:
        raise ForeignModelError(source, [str(error)]) from error


@contextmanager
def reporting_shortage(source: Path, where: str) -> Iterator[None]:
    """Block in which memory that has run out is told as a problem of the source.

    Raises:
        ForeignModelError: It has.
    """
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        free = free_memory()
        left = "" if free is None else f"; {readable_bytes(free)} are free"
        raise ForeignModelError(source, [f"memory ran out {where}{left}"]) from error
