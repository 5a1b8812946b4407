"""A device with little memory, made up, for the tables of a grid.

Owns what is free of it by the tables that there are. Does not own the tables.
"""

import random
from collections.abc import Iterator
from functools import partial

from torch import Tensor

from model.config import SearchConfig
from model.decode.backends.cuda.backend import GridBackend
from model.decode.backends.cuda.growth import Sizes
from model.decode.backends.cuda.recording import Rerun
from model.decode.backends.cuda.tables import GridTables
from model.decode.footprint import working_bytes
from model.decode.session import DecodeRequest, DecodingSession, SessionLimits
from model.nn.transformer import Transformer
from support.search_cases import (
    TOKENS,
    random_request,
)

LIMITS = SessionLimits(max_rows=64, max_slots=16, max_source_length=48, max_target_length=64)
PLENTY = 2**40


def tensors(tables: GridTables) -> list[Tensor]:
    rest = (tables.cross_keys, tables.cross_values, tables.ancestors, tables.forced)
    return [*tables.growing, *tables.replaced, *rest]


class Memory:
    """A device with so much memory for tables, whose grids are those of the sessions it opened."""

    def __init__(self, transformer: Transformer, num_bytes: int) -> None:
        self.num_bytes = num_bytes
        self.num_asked = 0
        self._transformer = transformer
        self._reserved = working_bytes(transformer.config, number_bytes=8)
        self._session: DecodingSession | None = None

    @property
    def backend(self) -> GridBackend:
        assert self._session is not None
        assert isinstance(self._session._backend, GridBackend)
        return self._session._backend

    @property
    def tables(self) -> Iterator[GridTables]:
        return (grid._tables for grid in self.backend._grids.values())

    @property
    def used(self) -> int:
        return sum(tensor.nbytes for tables in self.tables for tensor in tensors(tables))

    def free_bytes(self) -> int:
        self.num_asked += 1
        return self.num_bytes - self.used + self._reserved

    def session(self) -> DecodingSession:
        self._session = None
        opener = partial(GridBackend, recorder=Rerun(), free_bytes=self.free_bytes)
        self._session = DecodingSession(
            self._transformer, tokens=TOKENS, limits=LIMITS, opener=opener
        )
        return self._session


def requests(count: int, *, seed: int = 5, beam_size: int = 4) -> list[DecodeRequest]:
    rng = random.Random(seed)
    search = SearchConfig(beam_size=beam_size, max_length=24)
    return [random_request(rng, search) for _ in range(count)]


def need_of(transformer: Transformer, sizes: Sizes) -> int:
    """Bytes free before tables of the smallest size become so large."""
    memory = Memory(transformer, PLENTY)
    memory.session().admit(requests(1))
    (tables,) = memory.tables
    return memory.used + tables.bytes_to_have(sizes)
