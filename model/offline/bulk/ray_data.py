"""Translation inside a pipeline of Ray Data: the class that `Dataset.map_batches` gets.

Owns what its actors are told, and what becomes of a batch. An actor has one network and one session
with a thread of its own; calls are asynchronous, so as many batches as Ray has on their way
translate through that session at once. Nothing of Ray is imported: it makes the actors, hands them
batches, restarts them when they die. Exactly once by block, side files and going on after the
driver's end are `dragoman translate --engine ray`'s, which needs no pipeline.
"""

import asyncio
from collections.abc import AsyncIterator, Container, Iterator, Sequence
from pathlib import Path

from model.arithmetic import ComputeType
from model.checkpoint.description.config_file import read_manifest
from model.checkpoint.files.checksums import fingerprint, unreplaced
from model.checkpoint.manifest import Manifest
from model.config import SearchConfig
from model.errors import ConfigError, DecodingError, shown
from model.loading import automatic_compute_type
from model.offline.bulk.batches import BatchT, cells_of_batch, with_columns
from model.offline.bulk.blocks import NO_SCORE, Bad, Cell, Columns, too_long
from model.offline.bulk.shared_session import SharedSession
from model.offline.bulk.task import Method, open_network
from model.system.cores import MAX_THREADS
from model.text.constraints.control import Control
from model.text.drafts.segments import Translation
from model.text.languages.tags import LanguagePair, lenient_tag, lookup_tags

MAX_ROWS = 128
MAX_CHARACTERS = 100_000


def translation_method(
    checkpoint: str | Path,
    *,
    source: str | None = None,
    target: str | None = None,
    search: SearchConfig | None = None,
    control: Control | None = None,
    device: str = "cpu",
    compute_type: ComputeType = "auto",
    with_shortlist: bool = False,
    num_threads: int = 1,
    max_rows: int = MAX_ROWS,
    max_characters: int = MAX_CHARACTERS,
) -> Method:
    """What all actors are told; found out where the pipeline is made, before any actor is.

    Args:
        checkpoint: Its folder, which has the same path on every machine; its files are compared.
        source: Source language, where the checkpoint has several.
        target: Target language, likewise.
        search: None for the defaults.
        control: What is wanted of each text; None for anything.
        device: Where an actor's network runs, "cpu" or "cuda"; the latter wants `num_gpus=1`.
        compute_type: Its arithmetic, the same on every machine.
        with_shortlist: Whether sentences choose from the checkpoint's lexical shortlist.
        num_threads: Of an actor's network; give `map_batches` as many `num_cpus`.
        max_rows: Beam rows that run at once in an actor.
        max_characters: Of a text; a longer one has a reason instead of a translation.

    Raises:
        CheckpointError: There is no checkpoint, or it is damaged.
        ConfigError: It has not this direction, or a number is impossible.
    """
    search = search or SearchConfig()
    for name, value, limit in (
        ("num_threads", num_threads, MAX_THREADS),
        ("max_rows", max_rows, None),
        ("max_characters", max_characters, None),
    ):
        if value < 1 or (limit is not None and value > limit):
            most = "at least 1" if limit is None else f"from 1 to {limit}"
            raise ConfigError(f"{name} is {value}; it must be {most}")
    if device not in {"cpu", "cuda"}:
        raise ConfigError(f"device is {shown(device)}; an actor's is 'cpu' or 'cuda'")
    directory = Path(checkpoint).absolute()
    with unreplaced(directory):
        manifest = read_manifest(directory)
        name = fingerprint(directory)
    is_open = compute_type == "auto"
    return Method(
        checkpoint=directory,
        fingerprint=name,
        device=device,
        compute_type=automatic_compute_type(manifest, device) if is_open else compute_type,
        with_shortlist=with_shortlist,
        num_threads=num_threads,
        max_rows=max(max_rows, search.beam_size),
        pair=_chosen_pair(manifest, source, target),
        search=search,
        control=control or Control(),
        max_characters=max_characters,
    )


def _chosen_pair(manifest: Manifest, source: str | None, target: str | None) -> LanguagePair:
    """The one direction that is meant.

    Raises:
        ConfigError: There is none, or there are several.
    """
    wanted = (
        _nearest(source, {pair.source for pair in manifest.pairs}),
        _nearest(target, {pair.target for pair in manifest.pairs}),
    )
    fitting = [
        pair
        for pair in manifest.pairs
        if wanted[0] in {None, pair.source} and wanted[1] in {None, pair.target}
    ]
    if len(fitting) == 1:
        return fitting[0]
    has = ", ".join(f"{pair.source}-{pair.target}" for pair in manifest.pairs[:20])
    asked = "-".join(tag or "any" for tag in wanted)
    raise ConfigError(
        f"{manifest.name} has {len(fitting) or 'no'} directions for {asked}; it translates {has}"
    )


def _nearest(code: str | None, known: Container[str]) -> str | None:
    """The known tag that a code stands for, as for a request; its own if there is none."""
    if code is None:
        return None
    nearer = lookup_tags(lenient_tag(code))
    return next((tag for tag in nearer if tag in known), nearer[0])


class ColumnTranslator:
    """Translation of columns, for `Dataset.map_batches`; an actor is one of these.

    Each column gets a column of translations beside it, and all of them one column of reasons:
    null, or why a row has no translation of which column. Nothing else of a row changes.

    Args:
        method: How texts are translated, of `translation_method`.
        columns: Columns that are translated.
        suffix: Of the new columns' names; None for `_` and the target language.
        reason_column: The name of the column of reasons.

    Raises:
        ConfigError: Columns are not named, or named twice.
        CheckpointError: The checkpoint is not there, is another one, or too large for this machine.
    """

    def __init__(
        self,
        method: Method,
        columns: Sequence[str],
        *,
        suffix: str | None = None,
        reason_column: str = "untranslated",
    ) -> None:
        if isinstance(columns, str) or not columns:
            raise ConfigError(f"columns is {shown(columns)}; it is a list of names")
        suffix = f"_{method.pair.target}" if suffix is None else suffix
        self._columns = Columns(
            names=tuple(columns), new=tuple(f"{column}{suffix}" for column in columns)
        )
        self._reason_column = reason_column
        every = [*self._columns.names, *self._columns.new, reason_column]
        for name in every:
            if every.count(name) > 1:
                raise ConfigError(f"columns, new columns and reasons name {shown(name)} twice")
        self._max_characters = method.max_characters
        self._session = SharedSession(lambda: open_network(method), method)

    async def __call__(self, batch: BatchT) -> AsyncIterator[BatchT]:
        """A batch with its translations.

        Args:
            batch: `batch_format` "pyarrow" or "numpy".

        Yields:
            One batch of the same form, rows in their order.

        Raises:
            DataError: The data has not the columns, or has the new ones already, or a column of
                something else than strings.
        """
        columns = [
            list(map(self._checked, cells))
            for cells in cells_of_batch(batch, self._columns, [self._reason_column])
        ]
        texts = [cell for cells in columns for cell in cells if isinstance(cell, str)]
        found = await asyncio.wrap_future(self._session.translate(texts))
        answers = iter(found)
        done = [_answered(cells, answers) for cells in columns]
        new: dict[str, list[str | None]] = {
            name: [None if isinstance(cell, Bad) else cell for cell in cells]
            for name, cells in zip(self._columns.new, done, strict=True)
        }
        reasons = [self._reason(row) for row in zip(*done, strict=True)]
        yield with_columns(batch, {**new, self._reason_column: reasons})

    def close(self) -> None:
        """Give the network back; an actor's end does it too."""
        self._session.close()

    def _checked(self, cell: Cell) -> Cell:
        if isinstance(cell, str) and len(cell) > self._max_characters:
            return too_long(len(cell), self._max_characters)
        return cell

    def _reason(self, row: Sequence[Cell]) -> str | None:
        """Why a row has not all of its translations."""
        bad = [
            f"{name}: {cell.reason}"
            for name, cell in zip(self._columns.names, row, strict=True)
            if isinstance(cell, Bad)
        ]
        return "; ".join(bad) or None


def _answered(cells: Sequence[Cell], answers: Iterator[Translation | DecodingError]) -> list[Cell]:
    """Cells with their texts' translations, which come in their order."""
    done: list[Cell] = []
    for cell in cells:
        if isinstance(cell, Bad):
            done.append(cell)
            continue
        answer = next(answers)
        done.append(NO_SCORE if isinstance(answer, DecodingError) else answer.text)
    return done
