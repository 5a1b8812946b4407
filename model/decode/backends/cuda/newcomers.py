"""The search of each newcomer, written into a grid's tables.

Owns what stands in a slot's rows when a sentence begins. Does not own the tables
(`model.decode.backends.cuda.tables`), nor what the encoder writes there.
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.config import SearchConfig
from model.decode.backends.cuda.tables import GridTables
from model.decode.constraints import suppressed_mask
from model.decode.lexical import automata_of
from model.decode.sampling import numbers_of
from model.phrases import MAX_PHRASE_TOKENS
from model.request import DecodeRequest

_NUM_NUMBERS = 8
"""Columns of what is sent of each newcomer, before what is forced on it."""


def fill_rows(rows: NDArray[np.int64], values: Sequence[Sequence[int]]) -> None:
    """Write one sequence into each row of (N, W), from the left; what is behind it stays."""
    lengths = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
    is_written = np.arange(rows.shape[1]) < lengths[:, None]
    rows[is_written] = np.fromiter(chain.from_iterable(values), dtype=np.int64)


def distinct_searches(
    requests: Sequence[DecodeRequest],
) -> tuple[list[SearchConfig], list[int]]:
    """The searches of requests, most of which share one, and of each request which it is."""
    places: dict[int, int] = {}
    kinds = [places.setdefault(id(request.search), len(places)) for request in requests]
    searches = {id(request.search): request.search for request in requests}
    return [searches[name] for name in places], kinds


class Newcomers:
    """Writes newcomers into the tables of a grid.

    Args:
        tables: Of the grid.
        forced_first_id: A first token that is forced on all sentences.
    """

    def __init__(self, tables: GridTables, *, forced_first_id: int | None) -> None:
        self._tables = tables
        self._first = () if forced_first_id is None else (forced_first_id,)

    def longest_plan(self, requests: Sequence[DecodeRequest]) -> int:
        """Positions at the most at which something is forced on one of the requests."""
        return max(len(r.prefix_ids) + len(self._first) + len(r.forced_ids) for r in requests)

    def write(self, slots: NDArray[np.int64], requests: Sequence[DecodeRequest]) -> None:
        """Set the search of newcomers to its beginning; the encoder writes its output itself.

        Args:
            slots: (N,), one each.
            requests: N of them.
        """
        searches, kinds = distinct_searches(requests)
        packed = self._packed(slots, requests, searches, kinds)
        index = packed[:, 0]
        self._write_numbers(index, packed)
        self._write_beginnings(index, packed)
        self._write_penalties(index, [searches[kind].diversity_penalty for kind in kinds])
        self._write_suppressed(index, requests)
        self._write_repeats(index, [searches[kind].no_repeat_ngram for kind in kinds])
        self._write_sampling(index, requests)
        self._write_phrases(index, requests)

    def _packed(
        self,
        slots: NDArray[np.int64],
        requests: Sequence[DecodeRequest],
        searches: Sequence[SearchConfig],
        kinds: Sequence[int],
    ) -> Tensor:
        """(N, W) on the device: slot, numbers of the search, lengths, and what is forced."""
        plans = [self._plan(request) for request in requests]
        rows = np.full((len(plans), _NUM_NUMBERS + max(map(len, plans))), -1, dtype=np.int64)
        rows[:, 0] = slots
        numbers = np.array(
            [
                (s.beam_size, s.candidates, s.max_length, s.start_stride, s.group_size)
                for s in searches
            ]
        )
        rows[:, 1:6] = numbers[kinds]
        rows[:, 6] = [len(request.prefix_ids) for request in requests]
        rows[:, 7] = [len(request.source_ids) for request in requests]
        fill_rows(rows[:, _NUM_NUMBERS:], plans)
        return self._tables.to_device(rows)

    def _plan(self, request: DecodeRequest) -> tuple[int, ...]:
        """The tokens that are forced at the first positions."""
        plan = (*request.prefix_ids, *self._first, *request.forced_ids)
        return plan[: len(request.prefix_ids) + request.search.max_length]  # the cap goes first

    def _write_numbers(self, index: Tensor, packed: Tensor) -> None:
        tables = self._tables
        for column, table in (
            (1, tables.widths),
            (2, tables.num_candidates),
            (3, tables.max_lengths),
            (5, tables.group_sizes),
            (6, tables.prefix_lengths),
            (7, tables.source_lengths),
        ):
            table.index_copy_(0, index, packed[:, column])

    def _write_beginnings(self, index: Tensor, packed: Tensor) -> None:
        """Set what is forced, the first tokens, and the rows that begin."""
        tables = self._tables
        widths, stride, forced = packed[:, 1:2], packed[:, 4:5], packed[:, _NUM_NUMBERS:]
        tables.forced.index_fill_(0, index, -1)
        tables.forced[:, : forced.shape[1]].index_copy_(0, index, forced)
        tables.tokens.index_copy_(0, index, forced[:, :1].expand(-1, tables.width))
        shape = (len(index), tables.width)
        start = torch.zeros(shape, device=tables.device, dtype=tables.scores.dtype)
        beam = torch.arange(tables.width, device=tables.device)
        is_empty = (beam % stride != 0) | (beam >= widths)
        tables.scores.index_copy_(0, index, start.masked_fill_(is_empty, float("-inf")))
        tables.positions.index_fill_(0, index, 0)
        tables.ancestors.index_fill_(0, index, value=False)

    def _write_penalties(self, index: Tensor, penalties: Sequence[float]) -> None:
        """Of the sentences that join; where none has groups, what stands there is not read."""
        tables = self._tables
        if any(penalties):
            values = torch.tensor(penalties, dtype=tables.penalties.dtype)
            tables.penalties.index_copy_(0, index, tables.sent(values))

    def _write_sampling(self, index: Tensor, requests: Sequence[DecodeRequest]) -> None:
        """Set how the sentences that join are drawn, if they are."""
        tables = self._tables
        if tables.sampling is None and all(one.search.sampling is None for one in requests):
            return
        drawn = tables.sampling or tables.begin_sampling()
        numbers = [numbers_of(request.search) for request in requests]
        columns = (drawn.temperatures, drawn.top_ks, drawn.top_ps, drawn.seeds)
        for table, values in zip(columns, zip(*numbers, strict=True), strict=True):
            table.index_copy_(0, index, tables.sent(torch.tensor(values, dtype=table.dtype)))

    def _write_suppressed(self, index: Tensor, requests: Sequence[DecodeRequest]) -> None:
        """Set the suppressed tokens of the sentences that join, in place of those before."""
        tables = self._tables
        suppressed_ids = [request.suppressed_ids for request in requests]
        if tables.suppressed is None and not any(suppressed_ids):
            return
        table = tables.begin_suppressed() if tables.suppressed is None else tables.suppressed
        mask = suppressed_mask(suppressed_ids, vocab_size=tables.vocab_size, device=tables.device)
        table.index_copy_(0, index, mask)

    def _write_repeats(self, index: Tensor, sizes: Sequence[int]) -> None:
        """Set the n-grams of those that join, none of which has been fed anything."""
        tables = self._tables
        if tables.fed is None:
            if not any(sizes):
                return
            tables.begin_fed()
        tables.no_repeat_ngrams.index_copy_(0, index, tables.sent(torch.tensor(sizes)))

    def _write_phrases(self, index: Tensor, requests: Sequence[DecodeRequest]) -> None:
        """Set the phrases of the sentences that join, none of them met."""
        tables = self._tables
        phrases = [request.phrases for request in requests]
        if tables.automata is None and not any(phrases):
            return
        automata = tables.automata or tables.begin_automata()
        automata.write(index, automata_of(phrases, tables.device, num_tokens=MAX_PHRASE_TOKENS))
        tables.phrase_states.index_fill_(1, index, 0)
