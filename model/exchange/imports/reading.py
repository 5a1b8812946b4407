"""Reading of a foreign model: its importer, and what an earlier export of ours says beside it.

Owns which importer is asked, and what goes before what: a person's word, what was carried along,
what a family usually has. It knows no format, and writes nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from model.errors import ConfigError, ForeignModelError, UnreadableModelError
from model.exchange.carried import Carried, read_carried
from model.exchange.imports.imported import (
    FamilyImporter,
    ImportedModel,
    Importer,
    ImportOptions,
)
from model.exchange.imports.languages import nearest_pairs
from model.exchange.imports.unrecognised import unrecognised_reason
from model.exchange.model_card import card_licence
from model.system.host_memory import free_memory, readable_bytes
from model.system.out_of_memory import is_out_of_memory
from model.text.languages.tags import Language, LanguagePair, all_pairs


def recognised(content: Path, importers: Sequence[Importer], *, source: Path) -> Importer:
    """The first importer that knows what is there.

    Args:
        content: A folder or a file.
        importers: In the order in which they are asked.
        source: What an error names.

    Raises:
        ForeignModelError: None does; an `UnreadableModelError` of a file, of which that is all that
            is known.
    """
    for importer in importers:
        if importer.recognises(content):
            return importer
    kind = ForeignModelError if content.is_dir() else UnreadableModelError
    known = ", ".join(importer.name for importer in importers)
    reason = unrecognised_reason(content)
    told = f" ({known})" if reason is None else f": {reason}"
    raise kind(source, [f"is of no format that is known{told}"])


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
    asked = _asked(options, carried)
    try:
        imported = _read(importer, content, asked, source=source)
    except ForeignModelError as error:
        if not problems:
            raise
        raise ForeignModelError(source, [*problems, *error.problems]) from error
    problems += _unlike(imported.pairs, asked, carried)
    if problems:
        raise ForeignModelError(source, problems)
    known = {(pair.source, pair.target): pair for pair in asked.carried}
    pairs = tuple(known.get((pair.source, pair.target), pair) for pair in imported.pairs)
    return replace(
        imported,
        pairs=pairs,
        languages=_languages(pairs, imported, carried),
        limits=carried.limits or imported.limits,
        licence=imported.licence or card_licence(folder) or carried.licence,
        licences=imported.licences if carried.licences is None else carried.licences,
    )


def _asked(options: ImportOptions, carried: Carried) -> ImportOptions:
    """What a person says, and of the rest what was carried along.

    Where a person names the family, that says what asks for directions.
    """
    directions = carried.directions
    sources = [pair.source for pair in directions]
    targets = [pair.target for pair in directions]
    wanted = nearest_pairs(options.pairs, sources, targets) or tuple(
        (pair.source, pair.target) for pair in directions
    )
    if options.family is not None:
        return replace(options, pairs=wanted)
    places = set(wanted)
    known = tuple(pair for pair in directions if (pair.source, pair.target) in places)
    return replace(options, pairs=wanted, carried=known)


def _unlike(pairs: Sequence[LanguagePair], asked: ImportOptions, carried: Carried) -> Iterator[str]:
    """A direction beside those of the export whose form says that nothing asks for it.

    Where the pieces of all others are carried along because no rule finds them, none finds its.
    """
    if asked.family is not None or len(asked.carried) == len(asked.pairs):
        return
    forms = {_form(pair) for pair in carried.directions}
    names = {(pair.source, pair.target) for pair in carried.directions}
    for pair in pairs:
        if forms and (pair.source, pair.target) not in names and _form(pair) not in forms:
            yield (
                f"what asks for {pair.source} → {pair.target} is not known: it was exported for"
                " other directions, which are asked for in another way"
            )
            return


def _form(pair: LanguagePair) -> tuple[bool, bool]:
    """Whether anything stands before the source, and before the target."""
    return bool(pair.source_start), bool(pair.target_prefix)


def _languages(
    pairs: tuple[LanguagePair, ...], imported: ImportedModel, carried: Carried
) -> tuple[Language, ...]:
    """Those whose directions the pairs are, if each is translated into each other."""
    if pairs == imported.pairs and imported.languages:
        return imported.languages
    return carried.languages if pairs == all_pairs(carried.languages) else ()


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
