from collections.abc import Callable, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

from model.request import DecodeRequest, FinishedSentence

_Int8 = npt.NDArray[np.int8]
_Int32 = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]
_Float = npt.NDArray[np.float32]

LAYOUT: str

def missing_features() -> dict[str, list[str]]: ...
def rank(logits: list[float], tokens: list[int], size: int) -> list[int]: ...

class Team:
    @overload
    def __init__(self, num_threads: int) -> None: ...
    @overload
    def __init__(self, num_threads: int, seconds: Callable[[], float]) -> None: ...
    @overload
    def __init__(self, num_threads: int, *, spin_microseconds: int) -> None: ...
    def run(self, num_tasks: int, body: Callable[[int, int], object]) -> None: ...
    def begin(self) -> None: ...
    def end(self) -> None: ...
    @property
    def num_threads(self) -> int: ...
    @property
    def waited_seconds(self) -> float: ...
    @property
    def num_alone(self) -> int: ...

class WeightMemory:
    @overload
    def __init__(self) -> None: ...
    @overload
    def __init__(self, packed: Buffer) -> None: ...
    def trim(self) -> None: ...
    @property
    def parts(self) -> list[memoryview]: ...

class Matrix:
    def __init__(
        self,
        quanta: _Int8,
        scale: _Float,
        bias: _Float | None,
        padding: float = ...,
        memory: WeightMemory | None = ...,
    ) -> None: ...
    @staticmethod
    def packed_in(
        memory: WeightMemory, offset: int, num_outputs: int, num_inputs: int
    ) -> Matrix: ...
    @property
    def offset(self) -> int: ...
    @property
    def num_outputs(self) -> int: ...
    @property
    def num_inputs(self) -> int: ...

class Norm:
    def __init__(
        self, weight: _Float, bias: _Float | None, epsilon: float, is_rms: bool
    ) -> None: ...

class Network:
    def __init__(
        self,
        *,
        d_model: int,
        encoder_d_ff: int,
        decoder_d_ff: int,
        max_positions: int,
        heads: tuple[int, int, int, float],
        is_pre_norm: bool,
        activation: str,
        is_gated: bool,
        decoder_cell: str,
        embedding_factor: float,
        output_factor: float,
        source_table: Matrix,
        target_table: Matrix,
        output: Matrix,
        source_positions: _Float | None,
        target_positions: _Float | None,
        encoder_bias: _Float | None,
        decoder_bias: _Float | None,
        suppressed: list[int],
    ) -> None: ...
    def add_encoder_layer(
        self,
        *,
        query_key_value: Matrix,
        attention_output: Matrix,
        up: Matrix,
        down: Matrix,
        attention_norm: Norm,
        feed_forward_norm: Norm,
    ) -> None: ...
    def add_decoder_layer(
        self,
        *,
        cell: list[Matrix],
        cross_query: Matrix,
        cross_key_value: Matrix,
        cross_output: Matrix,
        up: Matrix,
        down: Matrix,
        cell_norm: Norm,
        cross_norm: Norm,
        feed_forward_norm: Norm,
    ) -> None: ...
    def set_embedding_norms(self, encoder: Norm, decoder: Norm) -> None: ...
    def set_final_norms(self, encoder: Norm, decoder: Norm) -> None: ...

class Shortlist:
    def __init__(
        self,
        network: Network,
        *,
        always: _Int32,
        offsets: _Int32,
        ids: _Int32,
        with_source: bool,
    ) -> None: ...

class Session:
    def __init__(
        self,
        level: object,
        network: Network,
        team: Team,
        *,
        max_rows: int,
        max_slots: int,
        max_source_length: int,
        max_target_length: int,
        eos_id: int,
        forced_first_id: int = ...,
        shortlist: Shortlist | None = ...,
    ) -> None: ...
    def admit(
        self,
        *,
        names: Sequence[int],
        slots: Sequence[int],
        rows: Sequence[Sequence[int]],
        requests: list[DecodeRequest],
    ) -> None: ...
    def step(self) -> list[FinishedSentence]: ...
    def release(self, name: int) -> None: ...
    def written(self, name: int) -> list[int]: ...
    def encode(self, ids: _Int32, lengths: _Int32, slots: _Int32) -> None: ...
    def feed(
        self,
        tokens: _Int64,
        rows: _Int64,
        slots: _Int64,
        positions: _Int64,
        log_probs: _Float,
        best: _Int64,
        attended: _Int64 | None,
        weights: _Float | None = ...,
    ) -> None: ...
    def log_probs_of(self, tokens: _Int64, log_probs: _Float) -> None: ...
    def seconds(self) -> list[float]: ...
