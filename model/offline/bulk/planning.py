"""The plan of a bulk job: which files a name means, their digests, and their blocks.

Owns the one look at all input, before anything is written, and the decision whether what an output
folder holds is the same job. What a format's files have to have is the format's.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from model.errors import DataError
from model.offline.bulk.blocks import Columns, Format, InputFile, Sizes, Survey, numbered
from model.offline.bulk.formats import common_format, format_of
from model.offline.bulk.job import (
    Fact,
    Job,
    check_same_content,
    check_same_facts,
    check_same_inputs,
)
from model.offline.bulk.places import Facts, absolute_name, is_pattern, place_of
from model.system.paths import is_text

_DIGEST_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Options of a command that asks for a job.

    Attributes:
        files: What is read, in order.
        format: Of all of them.
        columns: What is translated, and where it goes.
        sizes: How large blocks are.
        facts: What the output depends on besides; those of columns and sizes come to them.
    """

    files: tuple[Facts, ...]
    format: Format
    columns: Columns
    sizes: Sizes
    facts: Mapping[str, Fact]

    @property
    def all_facts(self) -> dict[str, Fact]:
        """Everything besides the input."""
        return {
            **self.facts,
            "columns": list(self.columns.names),
            "new columns": list(self.columns.new),
            "rows of a block": self.sizes.max_rows,
        }


def input_files(name: str, output: str | None = None) -> tuple[Facts, ...]:
    """The files that a path, a URL, a folder or a pattern means, by name.

    Of a folder these are the files in it of known formats; names that begin with a dot or an
    underscore are left out, as they are by everything that reads such folders.

    Args:
        name: Of what is translated.
        output: Folder of the translations: what a pattern finds in there is no input.

    Raises:
        ConfigError: Nothing here opens such URLs.
        DataError: There are none, or a name is not UTF-8, as everything is that a job keeps.
    """
    found = _input_files(name, _below(output))
    for one in found:
        if not is_text(one.name):
            raise DataError(f"{one.name!a}: the name is not UTF-8; names of a job must be")
    return found


def _below(folder: str | None) -> str | None:
    return None if folder is None else absolute_name(folder).rstrip("/") + "/"


def _input_files(name: str, own: str | None) -> tuple[Facts, ...]:
    place = place_of(name)
    kind = place.kind()
    if kind == "file":
        return (place.facts(),)
    if kind is None and not is_pattern(name):
        raise DataError(f"{name}: no such file or folder")
    found = tuple(one for one in place.files() if not _base(one.name).startswith((".", "_")))
    if kind == "folder":
        found = tuple(one for one in found if format_of(one.name) is not None)
    if own is not None and not kind:
        found = tuple(one for one in found if not absolute_name(one.name).startswith(own))
    if not found:
        what = "the folder has no file of a known format" if kind else "no file fits the pattern"
        raise DataError(f"{name}: {what}")
    return found


def format_of_all(files: Sequence[Facts], names: Sequence[str]) -> Format:
    """The format of all files.

    Args:
        files: They.
        names: Columns that are named.

    Raises:
        DataError: They have none or several, or columns are named where there are none, or not
            where there are.
    """
    found = common_format([one.name for one in files])
    if found.name == "txt" and names:
        raise DataError(f"{files[0].name}: has no columns, as every line is a text; no --columns")
    if found.name != "txt" and not names:
        raise DataError(f"{files[0].name}: which columns? --columns names them, with commas")
    return found


def columns_of(file: Facts, kind: Format, written: Sequence[str]) -> tuple[str, ...]:
    """The columns that are meant by names as they were written, with space around them or not.

    A column of exactly that name is, else the one that is called so but for space around it; where
    there is none, what a name is without that space.

    Args:
        file: Whose columns they are.
        kind: Its format.
        written: The names.

    Raises:
        DataError: The file cannot be read.
    """
    plain = tuple(name.strip() for name in written)
    with place_of(file.name).opened() as stream:
        headings = kind.headings(stream, file.name)
    for known in headings:
        found = [_column_of(name, known) for name in written]
        if None not in found:
            return tuple(name for name in found if name is not None)
    return plain


def _column_of(written: str, known: Sequence[str]) -> str | None:
    """The column that a name means, if one is."""
    if written in known:
        return written
    alike = dict.fromkeys(name for name in known if name.strip() == written.strip())
    plain = written.strip()
    return plain if plain in alike else next(iter(alike)) if len(alike) == 1 else None


def planned(wanted: Wanted) -> Job:
    """The whole plan; reads every file once.

    Raises:
        DataError: A file cannot be read or divided, or has not the columns.
    """
    surveys = [_surveyed(file, wanted) for file in wanted.files]
    inputs = [input_of(file, survey) for file, survey in zip(wanted.files, surveys, strict=True)]
    return Job(
        facts=wanted.all_facts,
        format=wanted.format.name,
        columns=wanted.columns,
        inputs=tuple(inputs),
        blocks=tuple(numbered(surveys)),
    )


def input_of(file: Facts, survey: Survey) -> InputFile:
    """A file as a job has it, once it was divided."""
    return InputFile(
        name=file.name,
        size=file.size,
        stamp=file.stamp,
        sha256=survey.sha256,
        header=survey.header,
        separator=survey.separator,
    )


def _surveyed(file: Facts, wanted: Wanted) -> Survey:
    place = place_of(file.name)
    with place.opened() as stream:
        found = wanted.format.survey(stream, file.name, wanted.columns, wanted.sizes)
    if place.facts() != file:
        raise DataError(f"{file.name}: was changed while it was read; do it again")
    return found


def continued(kept: Job, wanted: Wanted, name: str) -> Job:
    """The job that an output folder holds, if it is the requested one.

    A file whose time alone has changed is read again, and may go on if its bytes are the same.

    Args:
        kept: The folder's.
        wanted: What is asked for.
        name: The folder, for errors.

    Raises:
        DataError: It is another one; what differs is named.
    """
    check_same_facts(kept, wanted.all_facts, name)
    names, sizes = [one.name for one in wanted.files], [one.size for one in wanted.files]
    check_same_inputs(kept, names, sizes, name)
    inputs = []
    for one, file in zip(kept.inputs, wanted.files, strict=True):
        if one.stamp != file.stamp:
            check_same_content(one, _sha256(file.name), name)
        inputs.append(replace(one, stamp=file.stamp))
    return replace(kept, inputs=tuple(inputs))


def _sha256(name: str) -> str:
    digest = hashlib.sha256()
    with place_of(name).opened() as stream:
        while data := stream.read(_DIGEST_BYTES):
            digest.update(data)
    return digest.hexdigest()


def _base(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2]
