"""The ids of an imported vocabulary: which row of a foreign table each of them is.

Owns one numbering of special tokens for both sides, and the rows that are moved or added for it.
Foreign programs have a padding token or none, lists whose two sides number their special tokens
apart, and decoders that start from a zero vector. Where a list fits as it is, no row is moved.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import torch
from torch import Tensor

from model.config import SpecialTokens
from model.errors import ConfigError, shown
from model.exchange.imports.imported import QuantisedRows

_PADS = ("<blank>", "<pad>")
_NEVER = -10_000.0
"""A logit whose exponential is 0 in every type, and that every type can hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenNames:
    """Names of a foreign program's special tokens.

    Attributes:
        unk: Stands for pieces without an id.
        bos: Begins sentences, where the program puts it.
        eos: Ends them.
        start: First decoder input; None for a zero vector.
        has_source_eos: Sources end with `eos`.
    """

    unk: str
    bos: str
    eos: str
    start: str | None
    has_source_eos: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The foreign row of every id of one side.

    Attributes:
        old: By id; None is a row of zeros, which the foreign table does not have.
        num_old: Rows of the foreign table.
    """

    old: tuple[int | None, ...]
    num_old: int

    @property
    def is_unchanged(self) -> bool:
        """Whether every row stays in its place."""
        return self.old == tuple(range(self.num_old))

    @property
    def has_added(self) -> bool:
        """Whether there are rows that the foreign table does not have."""
        return None in self.old

    def of(self, table: Tensor | QuantisedRows) -> Tensor | QuantisedRows:
        """The rows of a foreign table, (num_old, …) → (ids, …)."""
        if self.is_unchanged:
            return table
        if isinstance(table, QuantisedRows):
            scale = self._moved(table.scale, added=1.0)
            return QuantisedRows(quanta=self._moved(table.quanta, added=0), scale=scale)
        return self._moved(table, added=0)

    def bias(self, stored: Tensor) -> Tensor:
        """The same of an output bias, (num_old,) → (ids,); added rows have no probability."""
        return self._moved(stored.float(), added=_NEVER)

    def no_bias(self) -> Tensor:
        """The output bias, (ids,), of a network without one: zeros, but for added rows."""
        return self.bias(torch.zeros(self.num_old))

    def _moved(self, table: Tensor, *, added: float) -> Tensor:
        moved = table[torch.tensor([row or 0 for row in self.old])]
        moved[torch.tensor([row is None for row in self.old])] = added
        return moved


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbering:
    """The ids of both sides.

    Attributes:
        tokens: Special ids, the same for both sides.
        source: Rows of the source's table.
        target: Rows of the target's table, of the output projection and of its bias.
        source_table: Piece → id.
        target_table: Piece → id; the same object if both sides are one.
    """

    tokens: SpecialTokens
    source: Rows
    target: Rows
    source_table: Mapping[str, int]
    target_table: Mapping[str, int]


def number_pieces(
    source: Sequence[str],
    target: Sequence[str],
    names: TokenNames,
    *,
    nameless: Set[str] = frozenset(),
) -> Numbering:
    """Number two lists of pieces; row i of a foreign table is piece i of its list.

    Padding is `<blank>` or `<pad>` where both lists have it, and a row of zeros after the last one
    otherwise; a decoder that starts from a zero vector starts from such a row too.

    Args:
        source: Pieces of the source, by foreign row.
        target: Those of the target.
        names: Of the special tokens.
        nameless: Pieces that stand for no text, and are never generated.

    Raises:
        ConfigError: A list lacks a special token; all are listed.
    """
    source_ids, target_ids = _first_ids(source), _first_ids(target)
    _check(source_ids, target_ids, names)
    pad = None if names.start is None else _pad_name(source_ids, target_ids, names)
    pad_id = len(target) if pad is None else target_ids[pad]
    slots = {names.unk: target_ids[names.unk], names.eos: target_ids[names.eos], pad: pad_id}
    if names.start is not None:
        slots[names.start] = target_ids[names.start]
    target_rows: list[int | None] = [*range(len(target)), *([None] if pad is None else [])]
    is_shared = list(source) == list(target)
    source_rows = target_rows if is_shared else _rows_around(source_ids, len(source), slots)
    source_table = _table(source, source_rows, nameless)
    target_table = source_table if is_shared else _table(target, target_rows, nameless)
    start_id = pad_id if names.start is None else target_ids[names.start]
    bos_id = target_ids.get(names.bos, start_id)
    silent = {pad_id, start_id, bos_id, slots[names.unk]} - {slots[names.eos]}
    without_piece = set(range(len(target_rows))).difference(target_table.values())
    return Numbering(
        tokens=SpecialTokens(
            pad_id=pad_id,
            eos_id=slots[names.eos],
            unk_id=slots[names.unk],
            start_id=start_id,
            suppressed_ids=tuple(sorted(silent | without_piece)),
            has_source_eos=names.has_source_eos,
        ),
        source=Rows(old=tuple(source_rows), num_old=len(source)),
        target=Rows(old=tuple(target_rows), num_old=len(target)),
        source_table=source_table,
        target_table=target_table,
    )


def unmoved(num_source: int, num_target: int) -> Numbering:
    """Every row in its place, without special tokens or pieces.

    For a network whose vocabulary cannot be numbered, so that its tensors are looked at still;
    never for one that is converted.

    Args:
        num_source: Rows of the source's table.
        num_target: Those of the target's.
    """
    source, target = (
        Rows(old=tuple(range(size)), num_old=size) for size in (num_source, num_target)
    )
    return Numbering(
        tokens=SpecialTokens(pad_id=0, eos_id=0, unk_id=0, start_id=0),
        source=source,
        target=target,
        source_table={},
        target_table={},
    )


def _first_ids(pieces: Sequence[str]) -> dict[str, int]:
    """Piece → id; of pieces that are alike the first, as a foreign program looks them up."""
    ids: dict[str, int] = {}
    for index, piece in enumerate(pieces):
        ids.setdefault(piece, index)
    return ids


def _check(source: Mapping[str, int], target: Mapping[str, int], names: TokenNames) -> None:
    needed = [
        ("source", source, names.unk),
        ("target", target, names.unk),
        ("target", target, names.eos),
    ]
    if names.has_source_eos:
        needed.append(("source", source, names.eos))
    if names.start is not None:
        needed.append(("target", target, names.start))
    problems = [
        f"the {side} vocabulary lacks the special token {shown(piece)}"
        for side, ids, piece in needed
        if piece not in ids
    ]
    if problems:
        raise ConfigError("; ".join(dict.fromkeys(problems)))


def _pad_name(
    source: Mapping[str, int], target: Mapping[str, int], names: TokenNames
) -> str | None:
    taken = {names.unk, names.eos}
    usable = (pad for pad in _PADS if pad in source and pad in target and pad not in taken)
    return next(usable, None)


def _rows_around(
    ids: Mapping[str, int], num_old: int, slots: Mapping[str | None, int]
) -> list[int | None]:
    """Old rows in their order, around those of special tokens, which have their ids already.

    Args:
        ids: Piece → old row.
        num_old: Old rows.
        slots: Special token → id; None is padding that no piece is.
    """
    placed = {index: None if name is None else ids.get(name) for name, index in slots.items()}
    rest = sorted(set(range(num_old)).difference(placed.values()))
    size = max(len(rest) + len(placed), max(placed) + 1)
    others = iter(rest)
    return [placed[index] if index in placed else next(others, None) for index in range(size)]


def _table(pieces: Sequence[str], rows: Sequence[int | None], nameless: Set[str]) -> dict[str, int]:
    """Piece → id for the rows in use; of pieces that are alike only the first row is."""
    table: dict[str, int] = {}
    ids = {row: index for index, row in enumerate(rows) if row is not None}
    for row, piece in enumerate(pieces):
        if piece not in nameless:
            table.setdefault(piece, ids[row])
    return table
