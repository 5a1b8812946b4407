"""Description of a bulk job: what it reads, how it is divided, what its output depends on.

Owns the manifest that stands in the output folder, and the comparison of two jobs: a command goes
on with a job only if nothing that matters differs, and says what does. It does not know how files
are read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from model.errors import DataError, shown
from model.offline.bulk.blocks import Block, Columns, InputFile

SCHEMA = 1

Fact = str | int | float | bool | None | list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A whole job.

    Attributes:
        facts: What the output depends on besides the input, by the names that errors have.
        format: Of all files.
        columns: What is translated, and where it goes.
        inputs: Files, in order.
        blocks: All of them, in order.
    """

    facts: Mapping[str, Fact]
    format: str
    columns: Columns
    inputs: tuple[InputFile, ...]
    blocks: tuple[Block, ...]

    @property
    def num_rows(self) -> int:
        """Rows of all files."""
        return sum(block.num_rows for block in self.blocks)

    def encoded(self) -> bytes:
        """The manifest's bytes."""
        value = {
            "schema": SCHEMA,
            "facts": dict(self.facts),
            "format": self.format,
            "columns": asdict(self.columns),
            "inputs": [asdict(one) for one in self.inputs],
            "blocks": [
                [one.file, one.group, one.start, one.end, one.first_row, one.num_rows]
                for one in self.blocks
            ],
        }
        return json.dumps(value, ensure_ascii=False, indent=1).encode()


def decoded_job(data: bytes, name: str) -> Job:
    """The job of a manifest.

    Args:
        data: Its bytes.
        name: Its place, for errors.

    Raises:
        DataError: It is none, or a later version's.
    """
    try:
        value: Any = json.loads(data)
        schema = value["schema"]
        if schema != SCHEMA:
            raise DataError(f"{name}: has schema {shown(schema)}; this version knows {SCHEMA}")
        columns = {key: tuple(names) for key, names in value["columns"].items()}
        return Job(
            facts=value["facts"],
            format=value["format"],
            columns=Columns(**columns),
            inputs=tuple(InputFile(**one) for one in value["inputs"]),
            blocks=tuple(_block(number, *one) for number, one in enumerate(value["blocks"])),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{name}: is no manifest of a bulk job") from error


def _block(number: int, *value: int) -> Block:
    file, group, start, end, first_row, num_rows = value
    return Block(
        number=number,
        file=file,
        group=group,
        start=start,
        end=end,
        first_row=first_row,
        num_rows=num_rows,
    )


def check_same_facts(kept: Job, facts: Mapping[str, Fact], name: str) -> None:
    """Refuse to go on with a job of other options.

    Args:
        kept: What the folder holds.
        facts: Of the job that is to go on.
        name: The output folder, for the error.

    Raises:
        DataError: One differs; the first is named, with both values.
    """
    for key in [*facts, *(key for key in kept.facts if key not in facts)]:
        there, here = kept.facts.get(key), facts.get(key)
        if there != here:
            raise _another(name, f"{key} is {shown(there)} there and {shown(here)} here")


def check_same_inputs(kept: Job, names: Sequence[str], sizes: Sequence[int], name: str) -> None:
    """Refuse to go on with a job of other files.

    Args:
        kept: What the folder holds.
        names: Files that are there now.
        sizes: Of each.
        name: The output folder, for the error.

    Raises:
        DataError: A file is another one, or has another size.
    """
    there = [one.name for one in kept.inputs]
    if there != list(names):
        only = next((one for one in names if one not in there), None)
        missing = next((one for one in there if one not in names), None)
        differs = f"{only} was not read there" if only else f"it read {missing} as well"
        if only is None and missing is None:
            differs = "it read the files in another order"
        raise _another(name, differs)
    for one, size in zip(kept.inputs, sizes, strict=True):
        if one.size != size:
            raise _another(name, f"{one.name} had {one.size} bytes there and has {size} now")


def check_same_content(kept: InputFile, sha256: str, name: str) -> None:
    """Refuse to go on where a file has other bytes.

    Raises:
        DataError: It has.
    """
    if kept.sha256 != sha256:
        raise _another(name, f"{kept.name} had other content there, with the same size")


def _another(name: str, differs: str) -> DataError:
    return DataError(
        f"{name}: holds another job: {differs}; name another folder, or remove this one"
    )
