"""The backend that a session on a GPU has: one grid for each width of beam in use.

Owns which grid a sentence is in. Grids are made when they are first needed, and stay: a service
whose requests all have one beam size has one, and one whose requests alternate records nothing
twice; only where memory is short do idle ones go. Sentences for which there is no memory beside
those that run wait here until some of these have ended. All of a step counts as "search": the
device does not tell its parts.
"""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import torch

from model.config import SpecialTokens
from model.decode.backends.cuda.grid import Grid, first_bytes
from model.decode.backends.cuda.growth import FreeBytes, Room, Sizes
from model.decode.backends.cuda.kernels.opening import open_kernels
from model.decode.backends.cuda.network import GridNetwork
from model.decode.backends.cuda.recording import Recorder
from model.decode.backends.torch_backend import TorchBackend
from model.decode.footprint import working_bytes
from model.decode.token_checks import check_tokens
from model.errors import CapacityError
from model.nn.transformer import Transformer
from model.request import DecodeRequest, FinishedSentence, SessionLimits

if TYPE_CHECKING:
    from model.decode.backends.cuda.kernels.launching import Launcher

_ENDED_BEFORE_ASKING = 16
"""Sentences that end before what did not fit is asked for again: to ask waits for the device."""


class GridBackend(TorchBackend):
    """Grids over one network."""

    def __init__(
        self,
        transformer: Transformer,
        *,
        tokens: SpecialTokens,
        limits: SessionLimits,
        recorder: Recorder,
        launcher: "Launcher | None" = None,
        free_bytes: FreeBytes | None = None,
    ) -> None:
        """Prepare the network; nothing else is allocated yet.

        Args:
            transformer: The network.
            tokens: The vocabulary's.
            limits: What to allocate for.
            recorder: Of steps.
            launcher: Of Triton's programs; None: steps are torch's operators.
            free_bytes: Memory that tables may still take; None: all that they ask for.

        Raises:
            UnsupportedVariantError: If the network has positions inside attention.
        """
        super().__init__(transformer, tokens=tokens, limits=limits)
        kernels = None if launcher is None else open_kernels(transformer, launcher)
        self._network = GridNetwork(transformer, kernels)
        self._recorder = recorder
        number_bytes = self._network.dtype.itemsize
        reserved = working_bytes(transformer.config, number_bytes=number_bytes)
        self._room = Room(free_bytes, reserved=reserved)
        self._grids: dict[int, Grid] = {}
        self._widths: dict[int, int] = {}  # of running sentences, by slot id
        self._waiting: dict[int, DecodeRequest] = {}  # for memory, in the order they came
        self._has_left = False  # a sentence, since those that wait were last looked at
        self._num_ended = 0  # since what did not fit was last asked for again

    @torch.inference_mode()
    def admit(self, slot_ids: Sequence[int], requests: Sequence[DecodeRequest]) -> None:
        """Encode sentences, sorted by length; see `Backend.admit`.

        Those that there is no memory for wait until there is.
        """
        check_tokens(requests, vocab_size=self._network.config.output_size, tokens=self._tokens)
        self._waiting.update(zip(slot_ids, requests, strict=True))
        try:
            self._admit_waiting()
        except BaseException:
            for slot_id in slot_ids:
                self.release(slot_id)
            raise

    def num_waiting(self) -> int:
        """Sentences that wait for memory."""
        return len(self._waiting)

    def _admit_waiting(self) -> None:
        """Encode those of the sentences that wait for which there is memory.

        Raises:
            CapacityError: There is none for the first, though nothing else runs.
        """
        self._has_left = False
        self._room.look_again()
        is_time = self._num_ended >= _ENDED_BEFORE_ASKING or not self._widths
        if is_time and self._room.has_refused:
            self._forget_refusals()
        self._admit_fitting()
        if self._waiting:
            self._drop_idle_grids()
            self._admit_fitting()
        if self._waiting and not self._widths:
            self._admit_alone()

    def _admit_alone(self) -> None:
        """Admit the first that waits if it can begin, though it may come to need more than is free.

        Somebody else may have that memory for now, and it may end before it needs it.
        """
        slot_id, request = next(iter(self._waiting.items()))
        width = _width(request)
        self._room.forget_refusals()
        grid = self._grid(width)
        if not grid.fits_now(request):
            needs = grid.describe_needs(request)
            raise CapacityError(
                f"there is no memory for one sentence, which needs tables of {needs}"
            )
        self._admit_to(width, {slot_id: request}, to_cap=False)

    def _forget_refusals(self) -> None:
        """Look for memory as if none had been asked for, with room kept for what runs alone."""
        self._num_ended = 0
        for grid in self._grids.values():
            grid.forget_ended()
        self._room.forget_refusals()

    def _admit_fitting(self) -> None:
        for width in sorted({_width(request) for request in self._waiting.values()}):
            if width not in self._grids and not self._has_room_for_grid(width):
                continue
            waiting = {i: r for i, r in self._waiting.items() if _width(r) == width}
            num_fitting = self._grid(width).num_fitting(list(waiting.values()))
            self._admit_to(width, dict(islice(waiting.items(), num_fitting)))

    def _admit_to(
        self, width: int, requests: dict[int, DecodeRequest], *, to_cap: bool = True
    ) -> None:
        """Move sentences that wait to a grid; see `Grid.admit`."""
        if not requests:
            return
        self._num_encoded_tokens += self._grids[width].admit(
            list(requests), list(requests.values()), to_cap=to_cap
        )
        for slot_id in requests:
            del self._waiting[slot_id]
        self._widths.update(dict.fromkeys(requests, width))

    def _drop_idle_grids(self) -> None:
        """Give the memory of grids back in which nothing runs, with their recordings."""
        for width in [width for width, grid in self._grids.items() if grid.is_idle]:
            del self._grids[width]
            self._room.forget(width)

    def _has_room_for_grid(self, width: int) -> bool:
        """Whether a grid that is not there yet could have its first tables."""

        def num_bytes() -> int:
            num_slots = self._most_slots(width)
            return first_bytes(self._network, width=width, num_slots=num_slots, limits=self._limits)

        nothing = Sizes(num_slots=0, num_columns=0, source_length=0)
        return self._room.has_for(width, nothing, num_bytes)  # refused, all larger ones are too

    def _most_slots(self, width: int) -> int:
        """Sentences at the most in the grid of a width."""
        narrowest = width // 2 + 1
        return min(self._limits.max_slots, self._limits.max_rows // narrowest)

    def _grid(self, width: int) -> Grid:
        """The grid of a width."""
        if width not in self._grids:
            self._room.look_again()
            self._grids[width] = Grid(
                self._network,
                width=width,
                num_slots=self._most_slots(width),
                tokens=self._tokens,
                limits=self._limits,
                recorder=self._recorder,
                room=self._room,
            )
        return self._grids[width]

    @torch.inference_mode()
    def step(self) -> list[FinishedSentence]:
        """Start a step of all sentences, and report those that the step before it finished.

        Raises:
            CapacityError: A sentence that waits for memory will have none.
            MemoryError: Tables must grow, and memory that was free is free no more.
        """
        self._watch.start()
        if self._waiting and (self._has_left or not self._widths):
            self._admit_waiting()
        busy = [grid for grid in self._grids.values() if not grid.is_idle]
        for grid in busy:
            grid.launch()
        finished = [sentence for grid in busy for sentence in grid.collect()]
        for sentence in finished:
            del self._widths[sentence.slot_id]
        self._has_left |= bool(finished)
        self._num_ended += len(finished)
        self._watch.lap("search")
        return finished

    @torch.inference_mode()
    def release(self, slot_id: int) -> None:
        """Drop a sentence that runs or waits; one that was dropped already is ignored."""
        if self._waiting.pop(slot_id, None) is not None:
            self._has_left = True  # those behind it may need less
        if slot_id in self._widths:
            self._grids[self._widths.pop(slot_id)].release(slot_id)
            self._has_left = True
            self._num_ended += 1

    def written(self, slot_id: int) -> list[int]:
        """Tokens of a running sentence's first beam, but for the last step's; of the host's copy.

        See `Backend.written`.
        """
        if slot_id in self._waiting:
            return []
        return self._grids[self._widths[slot_id]].written(slot_id)

    def check_integrity(self) -> None:
        """Assert that grids and slots agree."""
        for grid in self._grids.values():
            grid.check_integrity()


def _width(request: DecodeRequest) -> int:
    """Rows of the grid a sentence goes to: its beam size, rounded up to a power of two."""
    return int(1 << (request.search.beam_size - 1).bit_length())
